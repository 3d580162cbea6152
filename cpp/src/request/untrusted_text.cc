#include "request/untrusted_text.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "antipode/scope.h"
#include "request/open_writes.h"
#include "runtime/clock.h"
#include "runtime/dry_run.h"
#include "runtime/observers.h"
#include "runtime/settings.h"

namespace antipode {
namespace {

/// The datastores of which a lineage lost something where this is left of it; empty for what is of no known one.
std::set<std::string> Lost(const Lineage& whole, const Lineage& left) {
  std::set<std::string> lost;
  const auto take = [&lost](const auto& had, const auto& has) {
    for (const auto& each : had) {
      if (std::find(has.begin(), has.end(), each) == has.end()) lost.insert(each.datastore);
    }
  };
  take(whole.writes(), left.writes());
  take(whole.promises(), left.promises());
  for (const std::string& item : whole.unknown()) {
    const bool may_be_dependency = !std::isdigit(static_cast<unsigned char>(item[0]));
    if (may_be_dependency && left.unknown().count(item) == 0) lost.insert("");
  }
  // Marks lose their subjects to make room, and all there is where not even that suffices.
  std::set<std::string> reasons;
  for (const Incomplete& mark : left.incomplete()) reasons.insert(mark.reason);
  const auto gone = [&reasons](const Incomplete& mark) { return reasons.count(mark.reason) == 0; };
  const auto& marks = whole.incomplete();
  if (whole.open_branches() != left.open_branches() || std::any_of(marks.begin(), marks.end(), gone)) {
    for (const Incomplete& mark : marks) lost.insert(mark.subject);
  }
  return lost;
}

void CountHidden(const Lineage& lineage, const std::set<std::string>& egress) {
  std::set<std::string> hidden;
  for (const WriteId& write : lineage.writes()) hidden.insert(write.datastore);
  for (const Promise& promise : lineage.promises()) hidden.insert(promise.datastore);
  for (const std::string& datastore : hidden) {
    if (egress.count(datastore) == 0) Count("dropped_for_egress", datastore);
  }
}

/// Counts what of a lineage is not in its text, and says so.
void CountDropped(const Lineage& lineage, std::string_view text, const Settings& settings) {
  const Lineage allowed = settings.egress ? lineage.Allowed(*settings.egress) : lineage;
  if (settings.egress) CountHidden(lineage, *settings.egress);
  std::string names;
  for (const std::string& datastore : Lost(allowed, Lineage::Deserialize(text))) {
    Count("dropped_for_size", datastore);
    names += (names.empty() ? "'" : ", '") + datastore + "'";
  }
  if (names.empty()) return;
  const std::string most = std::to_string(settings.max_lineage_bytes);
  WarnOnce("dropped_for_size", names, most,
           "a lineage exceeds " + most + " bytes: dependencies on " + names + " were dropped and marked incomplete");
}

}  // namespace

Lineage ReceivedLineage(const Lineage& lineage) {
  const double now_s = SystemClock().UnixSeconds();
  const double latest_s = now_s + SettingsInForce()->max_promise.count();
  return lineage.Received(static_cast<std::uint64_t>(now_s / 3'600), static_cast<std::uint64_t>(latest_s));
}

Lineage ReceivedText(std::string_view text) { return ReceivedLineage(Lineage::Deserialize(text)); }

Lineage Readable(std::string_view subject, std::string_view text) {
  DecodeFault fault;
  if (const auto lineage = Lineage::TryDeserialize(text, &fault)) return ReceivedLineage(*lineage);
  const std::string about(subject);
  Count("unreadable", about);
  WarnOnce("unreadable", about, fault.code,
           "a lineage of '" + about + "' is unreadable (" + std::string(fault.code) + ")");
  return Lineage().Marked({about, "unreadable"});
}

std::string StoredText(const Lineage& lineage) {
  const auto scope = CurrentScope();
  if (scope && TellOfUnsent(*scope)) {
    if (const auto observer = DryRunNow()) observer->Leaves(*scope);
  }
  return LeavingText(lineage.WithoutNotes());
}

Lineage StoredLineage(std::string_view datastore, std::string_view text) {
  return Readable(datastore, text).WithoutNotes();
}

std::string LeavingText(const Lineage& lineage, const std::set<std::string>& notes) {
  const auto settings = SettingsInForce();
  if (notes.empty()) return LeavingText(lineage, *settings);
  std::string text = lineage.Serialize(Bound{settings->max_lineage_bytes, settings->egress, notes});
  CountDropped(lineage, text, *settings);
  return text;
}

std::string LeavingText(const Lineage& lineage, const Settings& settings) {
  bool whole = false;
  std::string text = lineage.Serialize(Bound{settings.max_lineage_bytes, settings.egress}, &whole);
  if (!whole) CountDropped(lineage, text, settings);
  return text;
}

}  // namespace antipode
