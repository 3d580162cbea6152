#include "barrier/demand.h"

#include <algorithm>

#include "barrier/plan.h"
#include "barrier/unmet.h"
#include "runtime/clock.h"

namespace antipode {
namespace {

/// Seconds that a check gets although the time is up.
constexpr double kLeastLookS = 0.05;
/// A server that is far away is asked all the same, instead of giving its connection up.
constexpr double kAutomaticLookS = 0.5;

}  // namespace

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

Demand::Demand(std::set<Dependency> wanted, const Policies& policies, std::shared_ptr<Allowance> allowance,
               Proofs proofs)
    : wanted_(std::move(wanted)), policies_(policies), allowance_(std::move(allowance)), proofs_(std::move(proofs)) {}

Demand::Proofs Demand::proofs() const {
  const std::lock_guard guard(lock_);
  return proofs_;
}

void Demand::Prove(const std::string& server, double now_s) {
  const std::lock_guard guard(lock_);
  proofs_[server] = now_s;
}

bool Demand::ProvedAfter(const std::string& server, double since_s) const {
  const std::lock_guard guard(lock_);
  const auto found = proofs_.find(server);
  return found != proofs_.end() && found->second > since_s;
}

double Demand::LeastLookS() const { return kLeastLookS; }
double AutomaticDemand::LeastLookS() const { return kAutomaticLookS; }

std::shared_ptr<Demand> Demand::Joined(const std::shared_ptr<Demand>& later) const {
  auto both = wanted_;
  both.insert(later->wanted_.begin(), later->wanted_.end());
  const Proofs theirs = later->proofs();
  Proofs shown;
  for (const auto& [server, at_s] : proofs()) {
    const auto found = theirs.find(server);
    if (found != theirs.end()) shown[server] = std::min(at_s, found->second);
  }
  return std::make_shared<Demand>(std::move(both), later->policies_, later->allowance_, std::move(shown));
}

std::shared_ptr<Demand> Demand::Branched(const std::set<std::string>& own) const {
  std::set<Dependency> left;
  for (const Dependency& each : wanted_) {
    const auto* promise = std::get_if<Promise>(&each);
    if (promise == nullptr || own.count(promise->id) == 0) left.insert(each);
  }
  return std::make_shared<Demand>(std::move(left), policies_, allowance_, proofs());
}

AutomaticDemand::AutomaticDemand(Lineage lineage, std::shared_ptr<const Settings> settings,
                                 std::shared_ptr<Demand> called, Found found, std::set<Dependency> wanted,
                                 std::shared_ptr<Allowance> allowance, Proofs proofs)
    : Demand(std::move(wanted), found.policies, std::move(allowance), std::move(proofs)),
      lineage_(std::move(lineage)),
      settings_(std::move(settings)),
      called_(std::move(called)),
      found_(std::move(found)) {}

AutomaticDemand::Found AutomaticDemand::Find(const Scope& scope, const Store& store, const Lineage& lineage,
                                             const Settings& settings) {
  Found made;
  const bool reported = settings.on_unknown != Policy::kRaise;
  std::vector<Outcome> settled = AbsentOf(lineage, scope.inside().own, reported);
  if (reported) {
    for (const Outcome& each : settled) made.unknown.insert(DatastoreOf(each.dependency));
  }
  if (settled.empty() && !Concerns(lineage, store.datastore())) return made;  // As most requests at most stores.
  const Clock& clock = store.clock();
  made.policies = Policies::Of(settings, clock.Hour());
  BarrierOptions asked;
  asked.only = std::set<std::string>{store.datastore()};
  asked.at = At::kRead;
  const Plan plan = Planned(lineage, asked, false, clock.UnixSeconds(), scope.inside().own, true);
  if (const auto found = plan.pending.find(store.datastore()); found != plan.pending.end()) made.wanted = found->second;
  std::copy_if(plan.settled.begin(), plan.settled.end(), std::back_inserter(settled),
               [](const Outcome& each) { return each.status != Status::kExcluded; });
  const Wait known({}, settled, plan.incomplete, made.policies, clock.Now(), clock.UnixSeconds(), 0);
  if (!known.Result(known.started_s()).ok()) made.hopeless = known;
  return made;
}

std::shared_ptr<AutomaticDemand> AutomaticDemand::Of(Scope& scope, const Store& store,
                                                     const std::shared_ptr<const Settings>& settings,
                                                     const std::shared_ptr<Demand>& called) {
  const Lineage lineage = scope.lineage();
  if (lineage.empty()) return nullptr;
  const auto held = std::static_pointer_cast<AutomaticDemand>(DemandSet::In(scope, store.datastore(), true));
  if (held && held->lineage_.IsCopyOf(lineage) && held->settings_ == settings && held->called_ == called) return held;
  Found found = Find(scope, store, lineage, *settings);
  std::set<Dependency> wanted;
  for (const Dependency& each : found.wanted) {
    if (!called || called->wanted().count(each) == 0) wanted.insert(each);
  }
  std::shared_ptr<Allowance> allowance;
  {
    Scope::Inside& inside = scope.inside();
    const std::lock_guard guard(inside.lock);
    allowance = inside.Allowed();
  }
  const bool same = held && held->wanted() == wanted;
  std::shared_ptr<AutomaticDemand> made(new AutomaticDemand(lineage, settings, called, std::move(found),
                                                            std::move(wanted), std::move(allowance),
                                                            same ? held->proofs() : Proofs()));
  DemandSet::Leave(scope, store.datastore(), made);
  return made;
}

std::unique_ptr<UnmetError> AutomaticDemand::Flaw() const {
  const auto& hopeless = found_.hopeless;
  return hopeless ? ErrorOf(hopeless->Result(hopeless->started_s())) : nullptr;
}

void DemandSet::Leave(Scope& scope, const std::string& datastore, const std::shared_ptr<Demand>& demand) {
  scope.inside().Attach(std::make_shared<DemandSet>(Demands{{{datastore, demand->Automatic()}, demand}}));
}

std::shared_ptr<Demand> DemandSet::In(const Scope& scope, const std::string& datastore, bool automatic) {
  const auto held = scope.inside().Attached<DemandSet>();
  if (!held) return nullptr;
  const auto found = held->of_.find({datastore, automatic});
  return found == held->of_.end() ? nullptr : found->second;
}

std::shared_ptr<const Attachment> DemandSet::Joined(const Attachment& later) const {
  auto of = of_;
  for (const auto& [key, demand] : static_cast<const DemandSet&>(later).of_) {
    auto& held = of[key];
    held = held ? held->Joined(demand) : demand;
  }
  return std::make_shared<DemandSet>(std::move(of));
}

std::shared_ptr<const Attachment> DemandSet::Branched(const std::set<std::string>& own) const {
  Demands of;
  for (const auto& [key, demand] : of_) {
    if (auto branched = demand->Branched(own)) of[key] = std::move(branched);
  }
  return std::make_shared<DemandSet>(std::move(of));
}

}  // namespace antipode
