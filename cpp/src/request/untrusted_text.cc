#include "request/untrusted_text.h"

#include "runtime/clock.h"
#include "runtime/observers.h"
#include "runtime/settings.h"

namespace antipode {
namespace {

/// What is left of a lineage that came from elsewhere.
Lineage Arrived(const Lineage& lineage) {
  const double now_s = SystemClock().UnixSeconds();
  const double latest_s = now_s + SettingsInForce()->max_promise.count();
  return lineage.Received(static_cast<std::uint64_t>(now_s / 3'600), static_cast<std::uint64_t>(latest_s));
}

}  // namespace

Lineage ReceivedText(std::string_view text) { return Arrived(Lineage::Deserialize(text)); }

Lineage Readable(std::string_view subject, std::string_view text) {
  DecodeFault fault;
  if (const auto lineage = Lineage::TryDeserialize(text, &fault)) return Arrived(*lineage);
  const std::string about(subject);
  Count("unreadable", about);
  WarnOnce("unreadable", about, fault.code,
           "a lineage of '" + about + "' is unreadable (" + std::string(fault.code) + ")");
  return Lineage().Marked({about, "unreadable"});
}

std::string StoredText(const Lineage& lineage) { return LeavingText(lineage.WithoutNotes()); }

Lineage StoredLineage(std::string_view datastore, std::string_view text) {
  return Readable(datastore, text).WithoutNotes();
}

std::string LeavingText(const Lineage& lineage) {
  bool whole = false;
  return LeavingText(lineage, *SettingsInForce(), &whole);
}

std::string LeavingText(const Lineage& lineage, const Settings& settings, bool* whole) {
  std::string text = lineage.Serialize(Bound{settings.max_lineage_bytes, settings.egress}, whole);
  if (*whole) return text;
  // What was dropped is marked, and only where it was: a mark that was there before was counted when it was made.
  if (const auto sent = Lineage::TryDeserialize(text)) {
    for (const Incomplete& mark : sent->incomplete()) {
      if (lineage.incomplete().count(mark) != 0) continue;
      Count(mark.reason == kEgress ? "dropped_for_egress" : "dropped_for_size", mark.subject);
      if (mark.reason != kEgress) {
        WarnOnce("dropped_for_size", mark.subject, "",
                 "a lineage exceeds " + std::to_string(settings.max_lineage_bytes) + " bytes: dependencies on '" +
                     mark.subject + "' were dropped and marked incomplete");
      }
    }
  }
  return text;
}

}  // namespace antipode
