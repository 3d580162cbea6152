#include "barrier/automatic.h"

#include <algorithm>

#include "antipode/barrier.h"
#include "barrier/plan.h"
#include "barrier/unmet.h"
#include "request/inside.h"
#include "request/open_writes.h"
#include "runtime/clock.h"
#include "runtime/dry_run.h"
#include "runtime/observers.h"
#include "runtime/settings.h"

namespace antipode {
namespace {

/// A server that is far away is asked all the same, instead of giving its connection up.
constexpr double kAutomaticLookS = 0.5;

/// What was chosen for the block of this thread.
thread_local std::optional<ReadBarriers> block;

/// Whether reads of a store's clients are to wait by themselves, whatever the mode.
bool Chosen(const Store& store, const Settings& settings) {
  return block.value_or(store.barriers().value_or(settings.barriers)) == ReadBarriers::kAuto;
}

/// Answers a read all the same, and says so. Throws the error where that is configured.
void Serve(const UnmetError& error, const std::string& datastore, const Settings& settings) {
  if (settings.on_stale == OnStale::kRaise) Throw(error);
  CountServed(datastore, error);
}

std::set<Dependency> Both(const std::set<Dependency>& wanted, const std::shared_ptr<BarrierFloor>& below) {
  auto both = wanted;
  if (below) both.insert(below->demanded().begin(), below->demanded().end());
  return both;
}

BarrierFloor::Proofs Shared(BarrierFloor::Proofs proofs, const std::shared_ptr<BarrierFloor>& below) {
  if (!below) return proofs;
  const auto theirs = below->proofs();
  for (auto each = proofs.begin(); each != proofs.end();) {
    each = theirs.count(each->first) == 0 ? proofs.erase(each) : std::next(each);
  }
  return proofs;
}

/// Tells of a read that the writes of a transaction of another connection than `who` are hidden from.
void TellOfUnseenRead(const Scope& scope, const std::string& datastore, const void* who) {
  for (const OpenWrite& each : OpenIn(scope)) {
    if (each.datastore == datastore && each.who != who) return TellOfUnseen("read", scope, each);
  }
}

}  // namespace

BarriersGuard::BarriersGuard(ReadBarriers which) : around_(block) { block = which; }
BarriersGuard::~BarriersGuard() { block = around_; }

std::shared_ptr<BarrierFloor> CurrentFloor(Store& store, bool reads, const void* who) {
  const auto scope = CurrentScope();
  if (!scope) {
    if (reads) Unscoped("read", store.datastore(), std::nullopt);
    return nullptr;
  }
  const auto called = FloorIn(*scope, store.datastore());
  const auto settings = SettingsInForce();
  const bool chosen = Chosen(store, *settings);
  const auto observer = reads && store.reads_from() == ReadsFrom::kReplica ? DryRunNow() : nullptr;
  if (observer) observer->Reads(*scope, store, chosen && store.Floors());
  if (reads) TellOfUnseenRead(*scope, store.datastore(), who);
  if (!chosen || settings->mode != Mode::kEnforce) return called;
  const Lineage lineage = scope->lineage();
  if (lineage.empty()) return called;
  const auto demand = Demand::Of(*scope, store, lineage, settings);
  if (reads) {
    TellOfUnknownStores(demand->unknown());
    if (const auto error = demand->Hopeless()) Serve(*error, store.datastore(), *settings);
  }
  const auto& wanted = demand->wanted();
  if (wanted.empty()) return called;
  if (called && std::includes(called->demanded().begin(), called->demanded().end(), wanted.begin(), wanted.end())) {
    return called;
  }
  Scope::Inside& inside = scope->inside();
  std::shared_ptr<Allowance> allowance;
  {
    const std::lock_guard guard(inside.lock);
    allowance = inside.Allowed();
  }
  return std::make_shared<AutomaticFloor>(demand, allowance, store, called);
}

std::shared_ptr<Floor> Floor::Current(Store& store, bool reads, const void* who) {
  return CurrentFloor(store, reads, who);
}

AutomaticFloor::AutomaticFloor(std::shared_ptr<Demand> demand, std::shared_ptr<Allowance> allowance, const Store& store,
                               std::shared_ptr<BarrierFloor> below)
    : BarrierFloor(store.datastore(), Both(demand->wanted(), below), std::move(allowance), demand->policies(),
                   Shared(demand->proofs(), below), store.clock()),
      demand_(std::move(demand)),
      below_(std::move(below)) {}

std::vector<std::shared_ptr<BarrierFloor>> AutomaticFloor::Stages() {
  if (!below_) return {shared_from_this()};
  return {below_, shared_from_this()};
}

double AutomaticFloor::LeftS() const {
  const double own_s = BarrierFloor::LeftS();
  return below_ ? std::max(own_s, LeftOf(*below_)) : own_s;
}

double AutomaticFloor::LeastLookS() const { return kAutomaticLookS; }

bool AutomaticFloor::Accepts(const Observation& observation) {
  if (below_ && !below_->Accepts(observation)) return false;
  if (served_) return true;
  Wait wait = Begin();
  return Judge(wait, observation) || EndsLate(wait);  // Another check would be for nothing.
}

void AutomaticFloor::Hold(const Look& look, Store* watched) {
  if (below_) below_->Hold(look, watched);
  if (!served_) BarrierFloor::Hold(look, watched);
}

void AutomaticFloor::Expire(const Unreachable& cause) {
  if (below_) below_->Expire(cause);
  BarrierFloor::Expire(cause);
}

void AutomaticFloor::FailLate(Wait& wait, const Unreachable& cause) {
  // Else the client's own error follows: there is nothing that could be served.
  if (demand_->settings().on_stale == OnStale::kRaise) BarrierFloor::FailLate(wait, cause);
}

void AutomaticFloor::FailSnapshot(const StaleSnapshot& error, const std::function<bool(const Floor&)>& shows) {
  if (below_ && !shows(*below_)) throw error;
  if (!served_.exchange(true)) CountServed(datastore(), error);
}

void AutomaticFloor::Fail(const UnmetError& error) {
  if (!served_) Serve(error, datastore(), demand_->settings());
  served_ = true;
}

}  // namespace antipode
