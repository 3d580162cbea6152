// What comes with a request, and what its answer carries back.
#include "antipode/settings.h"
#include "propagation/headers.h"
#include "request/inside.h"
#include "request/open_writes.h"
#include "request/untrusted_text.h"
#include "runtime/dry_run.h"
#include "runtime/observers.h"

namespace antipode {

std::shared_ptr<Scope> Extract(const Headers& headers, std::shared_ptr<Scope> held) {
  const bool opens = !held || !held->open();
  if (opens) held = std::make_shared<Scope>();
  if (Disabled()) return held;
  const auto baggage = ValuesOf(headers, kBaggage);
  const auto texts = Members(baggage);
  const bool sent = !ValuesOf(headers, kSentHeader).empty();
  Lineage came;
  for (const std::string& text : texts) came = came.Merge(Readable(kBaggage, text));
  if (texts.empty() && sent) {
    Count("stripped", kBaggage);
    WarnOnce("stripped", kBaggage, "",
             "a request was sent with a lineage and came without: something removes its baggage");
    came = came.Marked({std::string(kBaggage), "stripped"});
  }
  came = Noted(*held, came);
  Scope::Inside& inside = held->inside();
  {
    const std::lock_guard guard(inside.lock);
    inside.asked = inside.asked || sent || !baggage.empty();
    inside.came = Kept(inside.came.Merge(came));
    inside.TakeIn(came);
  }
  const auto observer = opens ? DryRunNow() : nullptr;
  if (observer) observer->Opened(*held, true);
  return held;
}

std::optional<std::string> AnswerOf(Scope& scope) {
  if (Disabled()) return std::nullopt;
  TellOfUnsent(scope);
  Scope::Inside& inside = scope.inside();
  Lineage added;
  bool asked = false;
  {
    const std::lock_guard guard(inside.lock);
    inside.answered = true;
    asked = inside.asked;
    added = WithBranches(inside.WithUnread(inside.lineage).Beyond(inside.came), inside.running->branches);
  }
  std::set<std::string> notes;
  if (const auto observer = DryRunNow()) {
    observer->Leaves(scope);
    notes = observer->Notes(scope);
  }
  if (added.empty() && !asked && notes.empty()) return std::nullopt;
  return LeavingText(added, notes);
}

void InjectResponse(Scope& scope, Headers& headers) {
  if (Disabled()) return;
  Replace(headers, kResponseHeader, AnswerOf(scope));
}

Lineage ExtractResponse(const Headers& headers, std::string_view service, Scope* scope) {
  Lineage came;
  if (Disabled()) return came;
  for (const std::string_view text : ValuesOf(headers, kResponseHeader)) came = came.Merge(Readable(service, text));
  if (scope != nullptr && scope->open()) {
    scope->Merge(came);
  } else if (!came.empty()) {
    Count(scope == nullptr ? "unscoped_response" : "late_response", service);
  }
  return DryRunNow() ? came.WithoutNotes() : came;
}

}  // namespace antipode
