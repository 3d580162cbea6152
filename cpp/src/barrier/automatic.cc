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

/// What was chosen for the block of this thread.
thread_local std::optional<ReadBarriers> block;

/// Whether reads of a store's clients are to wait automatically, whatever the mode.
bool Chosen(const Store& store, const Settings& settings) {
  return block.value_or(store.barriers().value_or(settings.barriers)) == ReadBarriers::kAuto;
}

/// What no check can show a read; null for nothing.
std::unique_ptr<UnmetError> Flaw(const AutomaticDemand& automatic) {
  TellOfUnknownStores(automatic.unknown());
  return automatic.Flaw();
}

/// Reports a read that the writes of a transaction of another connection than `who` are hidden from.
void TellOfUnseenRead(const Scope& scope, const std::string& datastore, const void* who) {
  for (const OpenWrite& each : OpenIn(scope)) {
    if (each.datastore == datastore && each.who != who) return TellOfUnseen("read", scope, each);
  }
}

}  // namespace

BarriersGuard::BarriersGuard(ReadBarriers which) : around_(block) { block = which; }
BarriersGuard::~BarriersGuard() { block = around_; }

std::shared_ptr<ReadFloor> CurrentFloor(Store& store, bool reads, const void* who, std::shared_ptr<StaleRead> stale) {
  const auto scope = CurrentScope();
  if (!scope) {
    if (reads) Unscoped("read", store.datastore(), std::nullopt);
    return nullptr;
  }
  const auto settings = SettingsInForce();
  const bool chosen = Chosen(store, *settings);
  const auto observer = reads ? DryRunNow() : nullptr;
  if (observer) observer->Reads(*scope, store, chosen && store.Floors());
  if (reads) TellOfUnseenRead(*scope, store.datastore(), who);
  ReadFloor::Demands demands;
  const auto called = DemandSet::In(*scope, store.datastore());
  if (called) demands.push_back(called);
  std::shared_ptr<const UnmetError> flaw;
  bool throws = false;
  const bool applies = chosen && settings->mode == Mode::kEnforce;
  if (const auto automatic = applies ? AutomaticDemand::Of(*scope, store, settings, called) : nullptr) {
    throws = automatic->Throws();
    if (!automatic->wanted().empty() && !(called && throws)) demands.push_back(automatic);
    if (reads) flaw = Flaw(*automatic);
  }
  if (flaw && throws && !called) Refuse(*flaw);
  if (!demands.empty()) {
    return std::make_shared<ReadFloor>(store.datastore(), std::move(demands), std::move(flaw), throws, std::move(stale),
                                       store.clock());
  }
  if (flaw) ServeStale(store.datastore(), *flaw, stale.get());
  return nullptr;
}

std::shared_ptr<Floor> Floor::Current(Store& store, bool reads, const void* who, std::shared_ptr<StaleRead> stale) {
  return CurrentFloor(store, reads, who, std::move(stale));
}

}  // namespace antipode
