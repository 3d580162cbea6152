#include "request/untrusted_text.h"

#include "runtime/clock.h"
#include "runtime/observers.h"
#include "runtime/settings.h"

namespace antipode {

Lineage ReceivedText(std::string_view text) {
  const Lineage lineage = Lineage::Deserialize(text);
  const Clock& clock = SystemClock();
  const double latest_s = clock.UnixSeconds() + CurrentSettings().max_promise.count();
  return lineage.Received(clock.Hour(), static_cast<std::uint64_t>(latest_s));
}

Lineage Readable(std::string_view subject, std::string_view text) {
  try {
    return ReceivedText(text);
  } catch (const LineageDecodeError& error) {
    Count("unreadable", subject);
    WarnOnce("unreadable", subject, error.code(),
             "a lineage of '" + std::string(subject) + "' is unreadable (" + error.code() + ")");
    return Lineage().Marked({std::string(subject), "unreadable"});
  }
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
