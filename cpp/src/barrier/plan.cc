#include "barrier/plan.h"

#include <algorithm>
#include <array>

#include "barrier/registry.h"
#include "lineage/promise_name.h"
#include "runtime/observers.h"

namespace antipode {
namespace {

constexpr const char* kAbsent = "this process has no shim for it";

/// Reasons of incompleteness after which waiting for the primary's position is enough.
constexpr std::array<std::string_view, 2> kDischarged{"size", "unsampled"};

using Stores = std::vector<std::shared_ptr<Store>>;

template <typename Is>
bool Any(const Stores& stores, Is is) {
  return std::any_of(stores.begin(), stores.end(), is);
}

/// Whether this store is a primary whose datastore has replicas that only reads see.
bool IsBesideReads(const std::shared_ptr<Store>& looking, const std::string& datastore) {
  if (looking == nullptr || looking->reads_from() == ReadsFrom::kReplica) return false;
  return Any(registry::StoresOf(datastore), [](const auto& each) {
    return each->reads_from() == ReadsFrom::kReplica && each->Floors() && !each->CanPoll();
  });
}

/// The store to wait at now. A primary stands for replicas that cannot be polled only where a floor is left for their
/// reads.
std::shared_ptr<Store> LookingFor(const std::string& datastore, bool scoped) {
  auto looking = registry::Looking(datastore);
  return !scoped && IsBesideReads(looking, datastore) ? nullptr : looking;
}

/// None where writes of a datastore can be waited for, else their outcome.
std::optional<Status> Way(const std::string& datastore, At at, bool scoped) {
  const Stores stores = registry::StoresOf(datastore);
  if (!stores.empty() && !Any(stores, [](const auto& each) { return each->Waitable(); })) return Status::kNotWaitable;
  const bool can = at == At::kRead ? Any(stores, [](const auto& each) { return each->Floors(); })
                                   : LookingFor(datastore, scoped) != nullptr;
  return can ? std::nullopt : std::optional(Status::kUnknownStore);
}

/// The same for a promise. One that expired is checked all the same.
std::optional<Status> PromiseWay(const Promise& promise, At at, double unix_s, bool scoped) {
  const Stores stores = registry::StoresOf(promise.datastore);
  if (stores.empty()) return Status::kUnknownStore;
  bool can = false;
  if (at == At::kRead) {
    can = Any(stores, [](const auto& each) { return each->Floors() && each->Promises(); });
  } else if (const auto looking = LookingFor(promise.datastore, scoped)) {
    can = looking->Promises();
  }
  if (can) return std::nullopt;
  if (!Any(stores, [](const auto& each) { return each->Waitable(); })) return Status::kNotWaitable;
  if (static_cast<double>(promise.expires_s) + kPromiseGraceS < unix_s) return Status::kAbandoned;
  return Way(promise.datastore, at, scoped).value_or(Status::kUndecidable);
}

std::string CauseOf(const Dependency& dependency, Status way) {
  const bool promised = std::holds_alternative<Promise>(dependency);
  switch (way) {
    case Status::kUnknownStore:
      return "nothing that is registered can wait for it";
    case Status::kNotWaitable:
      return "a message store without receipts";
    case Status::kAbandoned:
      return promised ? "it expired, and nothing registered can ask whether it was fulfilled" : "";
    case Status::kUndecidable:
      return promised ? "what is registered cannot ask for promises" : "";
    default:
      return "";
  }
}

/// A datastore of which this process has nothing is another team's, most likely: that is reported, unless it was asked
/// for by name, or nothing that can be waited for was set up here.
Outcome Settled(const Dependency& dependency, Status way, bool reports) {
  if (way == Status::kUnknownStore && registry::StoresOf(DatastoreOf(dependency)).empty()) {
    return {dependency, way, 0, "", kAbsent, reports && registry::WaitsForAny()};
  }
  return {dependency, way, 0, "", CauseOf(dependency, way), false};
}

void TakeAbsent(const Dependency& dependency, bool reported, std::vector<Outcome>& absent) {
  if (!registry::StoresOf(DatastoreOf(dependency)).empty()) return;
  absent.push_back({dependency, Status::kUnknownStore, 0, "", kAbsent, reported});
}

bool MayBeDependency(const std::string& item) { return item[0] < '0' || item[0] > '9'; }

}  // namespace

std::vector<Outcome> AbsentOf(const Lineage& lineage, const std::set<std::string>& own, bool reported) {
  std::vector<Outcome> absent;
  for (const WriteId& each : lineage.writes()) TakeAbsent(each, reported, absent);
  for (const Promise& each : lineage.promises()) {
    if (own.count(PromiseName(each.datastore, each.id)) == 0) TakeAbsent(each, reported, absent);
  }
  return absent;
}

void TellOfUnknownStores(const std::set<std::string>& names) {
  for (const std::string& name : names) {
    Count("unknown_store", name);
    WarnOnce("unknown_store", name, "",
             "a lineage depends on '" + name + "', which nothing here can wait for: it was let pass");
  }
}

bool IsSeenByReadsAlone(const std::string& datastore) { return IsBesideReads(registry::Looking(datastore), datastore); }

Plan Planned(const Lineage& lineage, const BarrierOptions& options, bool off, double unix_s,
             const std::set<std::string>& own, bool scoped) {
  const auto asked = [&](const std::string& subject) {
    return (subject.empty() || !options.only || options.only->count(subject) != 0) &&
           options.exclude.count(subject) == 0;
  };
  const bool reports = !options.only;
  Plan plan;
  std::map<std::string, std::optional<Status>> ways;
  for (const WriteId& write : lineage.writes()) {
    const auto known = ways.find(write.datastore);
    const auto way = known != ways.end()              ? known->second
                     : off || !asked(write.datastore) ? std::optional(Status::kExcluded)
                                                      : Way(write.datastore, options.at, scoped);
    ways.emplace(write.datastore, way);
    if (way) {
      plan.settled.push_back(Settled(write, *way, reports));
    } else {
      plan.pending[write.datastore].insert(write);
    }
  }
  for (const Promise& promise : lineage.promises()) {
    if (own.count(PromiseName(promise.datastore, promise.id)) != 0) {
      plan.settled.push_back({promise, Status::kExcluded, 0, "", "this branch fulfils it", false});
      continue;
    }
    const auto way = off || !asked(promise.datastore) ? std::optional(Status::kExcluded)
                                                      : PromiseWay(promise, options.at, unix_s, scoped);
    if (way) {
      plan.settled.push_back(Settled(promise, *way, reports));
    } else {
      plan.pending[promise.datastore].insert(promise);
    }
  }
  if (!off) {
    for (const Incomplete& mark : lineage.incomplete()) {
      if (asked(mark.subject)) plan.incomplete.insert(mark);
    }
    const auto& unknown = lineage.unknown();
    if (asked("") && std::any_of(unknown.begin(), unknown.end(), MayBeDependency)) {
      plan.incomplete.insert({"", "unknown_item"});
    }
  }
  for (const Incomplete& mark : plan.incomplete) {
    if (std::count(kDischarged.begin(), kDischarged.end(), mark.reason) == 0 || mark.subject.empty()) continue;
    const Stores stores = registry::StoresOf(mark.subject);
    if (Any(stores, [](const auto& each) { return each->Fences(); }) && !Way(mark.subject, options.at, scoped)) {
      plan.fenced[mark.subject].insert(mark);
    }
  }
  if (options.at == At::kRead && !scoped && (!plan.pending.empty() || !plan.fenced.empty())) {
    throw ConfigurationError("a barrier at the read leaves a floor for later reads: begin a scope with ScopeGuard");
  }
  const auto floors = [](const std::string& name) {
    return Any(registry::StoresOf(name), [](const auto& each) { return each->Floors(); });
  };
  for (const auto& [name, pending] : plan.pending) {
    if (floors(name)) plan.floored.insert(name);
  }
  for (const auto& [name, marks] : plan.fenced) {
    if (floors(name)) plan.floored.insert(name);
  }
  return plan;
}

}  // namespace antipode
