#include "barrier/demand.h"

#include <algorithm>

#include "barrier/plan.h"
#include "barrier/unmet.h"
#include "runtime/clock.h"

namespace antipode {
namespace {

/// Whether anything in a lineage is of a datastore, or may be.
bool Concerns(const Lineage& lineage, const std::string& datastore) {
  if (!lineage.unknown().empty()) return true;
  for (const Incomplete& mark : lineage.incomplete()) {
    if (mark.subject.empty() || mark.subject == datastore) return true;
  }
  const auto of_it = [&](const auto& each) { return each.datastore == datastore; };
  const auto writes = lineage.writes();
  const auto promises = lineage.promises();
  return std::any_of(writes.begin(), writes.end(), of_it) || std::any_of(promises.begin(), promises.end(), of_it);
}

}  // namespace

Demand::Demand(const Scope& scope, const Store& store, Lineage lineage, std::shared_ptr<const Settings> settings)
    : lineage_(std::move(lineage)), settings_(std::move(settings)) {
  const bool reported = settings_->on_unknown != Policy::kRaise;
  std::vector<Outcome> settled = AbsentOf(lineage_, scope.inside().own, reported);
  if (reported) {
    for (const Outcome& each : settled) unknown_.insert(DatastoreOf(each.dependency));
  }
  if (settled.empty() && !Concerns(lineage_, store.datastore())) return;  // As most requests at most stores.
  const Clock& clock = store.clock();
  policies_ = Policies::Of(*settings_, clock.Hour());
  BarrierOptions asked;
  asked.only = std::set<std::string>{store.datastore()};
  asked.at = At::kRead;
  const Plan plan = Planned(lineage_, asked, false, clock.UnixSeconds(), scope.inside().own, true);
  if (const auto found = plan.pending.find(store.datastore()); found != plan.pending.end()) wanted_ = found->second;
  std::copy_if(plan.settled.begin(), plan.settled.end(), std::back_inserter(settled),
               [](const Outcome& each) { return each.status != Status::kExcluded; });
  const Wait known({}, settled, plan.incomplete, policies_, clock.Now(), clock.UnixSeconds(), 0);
  if (!known.Result(known.started_s()).ok()) hopeless_ = known;
}

std::shared_ptr<Demand> Demand::Of(Scope& scope, const Store& store, const Lineage& lineage,
                                   const std::shared_ptr<const Settings>& settings) {
  std::shared_ptr<Demand> held;
  if (const auto attached = scope.inside().Attached<DemandSet>()) {
    const auto found = attached->of().find(store.datastore());
    if (found != attached->of().end()) held = found->second;
  }
  if (held && held->lineage_.IsCopyOf(lineage) && held->settings_ == settings) return held;
  auto made = std::make_shared<Demand>(scope, store, lineage, settings);
  if (held && held->wanted_ == made->wanted_) made->proofs_ = held->proofs();
  scope.inside().Attach(std::make_shared<DemandSet>(DemandSet::Demands{{store.datastore(), made}}));
  return made;
}

std::unique_ptr<UnmetError> Demand::Hopeless() const {
  return hopeless_ ? ErrorOf(hopeless_->Result(hopeless_->started_s())) : nullptr;
}

Demand::Proofs Demand::proofs() const {
  const std::lock_guard guard(lock_);
  return proofs_;
}

void Demand::Prove(const std::string& server, double now_s) {
  const std::lock_guard guard(lock_);
  proofs_[server] = now_s;
}

std::shared_ptr<const Attachment> DemandSet::Joined(const Attachment& later) const {
  auto of = static_cast<const DemandSet&>(later).of_;
  of.insert(of_.begin(), of_.end());
  return std::make_shared<DemandSet>(std::move(of));
}

std::shared_ptr<const Attachment> DemandSet::Branched(const std::set<std::string>&) const { return nullptr; }

}  // namespace antipode
