#include "barrier/call.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "barrier/floor.h"
#include "barrier/registry.h"
#include "barrier/unmet.h"
#include "lineage/promise_name.h"
#include "request/inside.h"
#include "request/open_writes.h"
#include "runtime/observers.h"

namespace antipode {
namespace {

/// Whether a server that says this of the first position of a log has that log. Only `unknown_log` says that it does
/// not have it; anything else is no answer.
bool HasLog(Status status) { return status == Status::kVisible || status == Status::kLost; }

double Bounded(double timeout_s, double most_s) {
  if (!(timeout_s > 0) || std::isinf(timeout_s)) {
    throw std::invalid_argument("timeout must be a positive number of seconds; to check once, use Check");
  }
  return std::min(timeout_s, most_s);
}

Policies PoliciesOf(const BarrierOptions& options, const Settings& settings, std::uint64_t hour) {
  Policies policies = Policies::Of(settings, hour);
  policies.raise_unmet = options.raise_unmet;
  if (options.on_unknown) policies.on_unknown = options.on_unknown;
  policies.on_incomplete = options.on_incomplete.value_or(policies.on_incomplete);
  return policies;
}

}  // namespace

Comparison::Comparison(const std::set<WriteId>& strangers, Policies policies, const Clock& clock, double timeout_s)
    : clock_(clock),
      wait_(PendingOf(strangers, asked_), {}, {}, (policies.on_unknown = Policy::kRaise, policies), clock.Now(),
            clock.UnixSeconds(), timeout_s) {}

Pending Comparison::PendingOf(const std::set<WriteId>& strangers, Asked& asked) {
  Pending pending;
  for (const std::string& name : registry::Registered()) {
    std::shared_ptr<Store> store;
    try {
      store = registry::Looking(name);
    } catch (const ConfigurationError&) {  // Two replicas: a barrier that waits for them says so.
    }
    if (!store) continue;
    for (const WriteId& stranger : strangers) {
      const auto start = store->LogStart(stranger.key);
      if (!start || store->watcher()->Lacks(*start)) continue;
      pending[name].insert(*start);
      asked[*start].emplace_back(stranger, store);
    }
  }
  return pending;
}

std::vector<Outcome> Comparison::Outcomes() {
  std::vector<Outcome> found;
  for (const Outcome& shown : wait_.Result(clock_.Now()).outcomes) {
    if (!HasLog(shown.status)) continue;
    for (const auto& [stranger, store] : asked_[shown.dependency]) {
      found.push_back({stranger, Status::kUnknownStore, 0, "",
                       "the store that is registered here as '" + store->datastore() + "' has its log", false});
    }
  }
  return found;
}

Call::Call(const BarrierOptions& options, Clock& clock, Purpose purpose)
    : options_(options), clock_(clock), scope_(CurrentScope()), purpose_(purpose), observer_(DryRunNow()) {
  if (observer_) called_ = CurrentCallStack();
  const Settings settings = CurrentSettings();
  timeout_s_ = Bounded(options.timeout.count(), settings.max_timeout.count());
  mode_ = options.mode.value_or(settings.mode);
  policies_ = PoliciesOf(options, settings, clock.Hour());
  const Lineage about = About();
  const std::set<std::string> own = scope_ ? scope_->inside().own : std::set<std::string>();
  plan_ = Planned(about, options_, mode_ != Mode::kEnforce, clock.UnixSeconds(), own, scope_ != nullptr);
  if (observer_ && mode_ == Mode::kDryRun) wanted_ = WithoutDryRun(about, own);
  auto settled = plan_.settled;
  if (mode_ == Mode::kDryRun) {
    for (Outcome& each : settled) each.cause = "dry run";
  }
  Pending pending;
  for (const auto& [name, asked] : plan_.pending) {
    if (!IsLeftToReads(name)) {
      pending.emplace(name, asked);
      continue;
    }
    for (const Dependency& each : asked) settled.push_back({each, Status::kDeferred, 0, "", "", false});
  }
  wait_.emplace(std::move(pending), settled, plan_.incomplete, policies_, clock.Now(), clock.UnixSeconds(), timeout_s_);
  if (scope_ && mode_ != Mode::kOff) TellOfOpenTransactions(about);
}

void Call::TellOfOpenTransactions(const Lineage& about) const {
  std::set<std::string> named;
  for (const WriteId& each : about.writes()) named.insert(each.datastore);
  for (const Promise& each : about.promises()) named.insert(each.datastore);
  for (const OpenWrite& each : OpenIn(*scope_)) {
    const std::string& name = each.datastore;
    const bool asked = (!options_.only || options_.only->count(name) != 0) && options_.exclude.count(name) == 0;
    if (asked && (!options_.lineage || named.count(name) != 0)) TellOfUnseen("barrier", *scope_, each);
  }
}

Lineage Call::About() const {
  if (Disabled()) return {};
  if (options_.lineage) return *options_.lineage;
  if (scope_) return scope_->inside().Doubted();
  const auto policy = CurrentSettings().on_unscoped.value_or(Policy::kRaise);
  Unscoped("barrier", "", mode_ == Mode::kEnforce ? policy : Policy::kReport);
  return {};
}

std::unique_ptr<Comparison> Call::Compare() {
  if (policies_.on_unknown) return nullptr;
  std::set<WriteId> strangers;
  for (const Outcome& each : plan_.settled) {
    const auto* write = std::get_if<WriteId>(&each.dependency);
    if (each.reported && write != nullptr) strangers.insert(*write);
  }
  if (strangers.empty()) return nullptr;
  auto comparison = std::make_unique<Comparison>(strangers, policies_, clock_, std::min(LeftS(), kLookS));
  return comparison->empty() ? nullptr : std::move(comparison);
}

void Call::Compared(Comparison& comparison) {
  const auto found = comparison.Outcomes();
  for (const Outcome& each : found) wait_->Settle(each);
  if (!found.empty() && policies_.raise_unmet) {
    throw ConfigurationError(Describe(found) + ": one store has two names; spell it alike in every service");
  }
}

Fences Call::AskFences() {
  Fences fences;
  for (const auto& [name, marks] : plan_.fenced) {
    for (const auto& store : registry::StoresOf(name)) {
      if (store->Fences()) fences.emplace(name, store->fencer()->Ask(FenceS()));
    }
  }
  return fences;
}

/// Whether its reads wait, and this call does not. A check asks no primary what a replica shows: it has all that was
/// written.
bool Call::IsLeftToReads(const std::string& datastore) const {
  return options_.at == At::kRead || (purpose_ == Purpose::kCheck && IsSeenByReadsAlone(datastore));
}

double Call::FenceS() const {
  return std::min(LeftS() / 2, kConnectS);  // The other half is for checks.
}

void Call::RaiseFences(const Fences& fences) {
  for (const auto& [name, fence] : fences) fence->Cancel();
  for (auto first = fences.begin(), last = first; first != fences.end(); first = last) {
    const std::string& name = first->first;
    last = fences.upper_bound(name);
    const auto writes = PositionsOf(first, last);
    if (writes.empty()) {
      Count("fence_failed", name);
      continue;
    }
    Count("fences", name);
    plan_.pending[name].insert(writes.begin(), writes.end());
    const bool later = IsLeftToReads(name);
    wait_->Discharge(name, later ? std::set<WriteId>() : writes, plan_.fenced[name]);
    if (!later) continue;
    for (const WriteId& each : writes) wait_->Settle({each, Status::kDeferred, 0, "", "", false});
  }
}

std::shared_ptr<Waiter> Call::MakeWaiter(std::function<void()> notify) {
  return std::make_shared<Waiter>(*wait_, std::move(notify), clock_, purpose_);
}

double Call::LeftS() const {
  const double deadline_s = wait_ ? wait_->deadline_s() : clock_.Now() + timeout_s_;
  return std::max(deadline_s - clock_.Now(), 0.0);
}

BarrierResult Call::Conclude() {
  BarrierResult result = wait_->Result(clock_.Now());
  LeaveAged(result);
  std::set<std::string> unknown;
  for (const Outcome& each : result.outcomes) {
    if (each.status == Status::kUnknownStore && each.reported) unknown.insert(DatastoreOf(each.dependency));
  }
  TellOfUnknownStores(unknown);
  const auto error = ErrorOf(result);
  if (purpose_ != Purpose::kRoute) Count(error ? "barrier_" + error->code() : "barrier_ok");
  if (error && policies_.raise_unmet) {  // What is returned is its caller's to use.
    TellOfUnmet("barrier", *error);
    Throw(*error);
  }
  if (!error) {
    LeaveFloors(result);
    Tell();
  }
  return result;
}

Plan Call::WithoutDryRun(const Lineage& about, const std::set<std::string>& own) const {
  try {
    return Planned(about, options_, false, clock_.UnixSeconds(), own, scope_ != nullptr);
  } catch (const ConfigurationError& error) {
    WarnOnce("dry_run", "", error.what(), std::string("a barrier would fail without the dry run: ") + error.what());
    return plan_;
  }
}

void Call::Tell() const {
  if (!observer_ || mode_ == Mode::kOff) return;
  const Plan& wanted = wanted_ ? *wanted_ : plan_;
  BarrierSeen seen;
  seen.scope = scope_.get();
  seen.called = called_;
  seen.at_read = options_.at == At::kRead;
  seen.only = options_.only;
  seen.exclude = options_.exclude;
  seen.dry = mode_ == Mode::kDryRun;
  for (const auto& [name, pending] : wanted.pending) {
    seen.guards.insert(seen.guards.end(), pending.begin(), pending.end());
  }
  seen.nothing = purpose_ != Purpose::kCheck && seen.guards.empty() && wanted.fenced.empty();
  seen.empty = wanted.settled.empty();
  observer_->Succeeds(seen);
}

void Call::LeaveAged(const BarrierResult& result) {
  std::set<std::string> promises;
  for (const Outcome& each : result.outcomes) {
    if (each.status != Status::kAged) continue;
    Count("aged", DatastoreOf(each.dependency));
    const auto* write = std::get_if<WriteId>(&each.dependency);
    if (write == nullptr) {
      const auto& promise = std::get<Promise>(each.dependency);
      promises.insert(PromiseName(promise.datastore, promise.id));
    } else if (scope_) {
      scope_->Remove(*write);
    }
  }
  if (!scope_ || promises.empty()) return;
  Scope::Inside& inside = scope_->inside();
  const std::lock_guard guard(inside.lock);
  inside.lineage = inside.lineage.WithoutPromises(promises);
}

/// Later reads may come by other connections: each satisfies the floor before it reads.
void Call::LeaveFloors(const BarrierResult& result) {
  if (!scope_) return;
  for (const std::string& name : plan_.floored) {
    const auto stores = registry::StoresOf(name);
    const bool looked_for =
        std::any_of(stores.begin(), stores.end(), [](const auto& each) { return each->Floors() && each->Promises(); });
    std::set<Dependency> demanded;
    for (const Dependency& each : plan_.pending[name]) {
      if (looked_for || std::holds_alternative<WriteId>(each)) demanded.insert(each);
    }
    if (demanded.empty()) continue;
    std::set<std::string> servers;
    for (const Outcome& each : result.outcomes) {
      if (DatastoreOf(each.dependency) == name && !each.server.empty()) servers.insert(each.server);
    }
    if (servers.size() != 1) servers.clear();
    Demand::Proofs proofs;
    for (const std::string& server : servers) proofs[server] = clock_.Now();
    DemandSet::Leave(*scope_, name,
                     std::make_shared<Demand>(demanded, policies_, std::make_shared<Allowance>(timeout_s_), proofs));
  }
}

void Call::NotStarted(const std::string& cause) {
  const double now_s = clock_.Now();
  for (const auto& [name, asked] : Pending(wait_->pending())) wait_->Failed(name, cause, now_s);
  throw VisibilityCheckError(cause, wait_->Result(now_s));
}

}  // namespace antipode
