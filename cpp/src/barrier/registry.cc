#include "barrier/registry.h"

#include <algorithm>
#include <map>

#include "barrier/fence.h"
#include "barrier/watcher.h"
#include "runtime/clock.h"
#include "runtime/forks.h"
#include "runtime/observers.h"
#include "runtime/settings.h"

namespace antipode {
namespace {

struct Stores {
  std::mutex lock;
  std::map<std::string, std::vector<std::shared_ptr<Store>>> of;
};

void RenewStores();

Stores& TheStores() {
  static auto* stores = [] {
    auto* made = new Stores;
    HoldWhileForking(ForkRank::kStores, made->lock, RenewStores);
    return made;
  }();
  return *stores;
}

/// The threads and connections of the parent process are none of its child's.
void RenewStores() {
  for (const auto& [name, stores] : TheStores().of) {
    for (const auto& store : stores) store->Forked();
  }
}

}  // namespace

namespace registry {

std::vector<std::shared_ptr<Store>> StoresOf(const std::string& datastore) {
  Stores& stores = TheStores();
  const std::lock_guard guard(stores.lock);
  const auto found = stores.of.find(datastore);
  return found == stores.of.end() ? std::vector<std::shared_ptr<Store>>() : found->second;
}

std::vector<std::string> Registered() {
  Stores& stores = TheStores();
  const std::lock_guard guard(stores.lock);
  std::vector<std::string> names;
  for (const auto& [name, each] : stores.of) names.push_back(name);
  return names;
}

bool WaitsForAny() {
  Stores& stores = TheStores();
  const std::lock_guard guard(stores.lock);
  return std::any_of(stores.of.begin(), stores.of.end(), [](const auto& each) {
    return std::any_of(each.second.begin(), each.second.end(), [](const auto& store) { return store->Waitable(); });
  });
}

std::shared_ptr<Store> Looking(const std::string& datastore) {
  std::vector<std::shared_ptr<Store>> servers;
  std::vector<std::shared_ptr<Store>> replicas;
  for (const auto& store : StoresOf(datastore)) {
    if (!store->CanPoll()) continue;
    servers.push_back(store);
    if (store->reads_from() == ReadsFrom::kReplica) replicas.push_back(store);
  }
  const auto& found = replicas.empty() ? servers : replicas;
  if (found.size() > 1) {
    throw ConfigurationError(std::to_string(found.size()) + (replicas.empty() ? " primaries" : " replicas") +
                             " are registered as '" + datastore +
                             "': at=now cannot know which one the next read asks; say which are replicas, wait at the "
                             "read, or give each its own datastore name");
  }
  return found.empty() ? nullptr : found[0];
}

std::shared_ptr<Watcher> SharedWatcher(Store& store) {
  try {
    return Looking(store.datastore()).get() == &store ? store.watcher() : nullptr;
  } catch (const ConfigurationError&) {  // Two replicas: a barrier that waits for them says so.
    return nullptr;
  }
}

}  // namespace registry

void Register(const std::shared_ptr<Store>& store) {
  {
    Stores& stores = TheStores();
    const std::lock_guard guard(stores.lock);
    auto& held = stores.of[store->datastore()];
    if (std::find(held.begin(), held.end(), store) == held.end()) held.push_back(store);
  }
  if (store->Floors() || SettingsInForce()->barriers != ReadBarriers::kAuto) return;
  WarnOnce(
      "automatic", store->datastore(), "",
      "no read of '" + store->datastore() + "' waits automatically: its clients hold none, whatever the settings say");
}

void Unregister(Store& store) {
  std::shared_ptr<Store> held;  // Lives until its watcher is closed.
  {
    Stores& stores = TheStores();
    const std::lock_guard guard(stores.lock);
    const auto found = stores.of.find(store.datastore());
    if (found != stores.of.end()) {
      auto& of = found->second;
      const auto each = std::find_if(of.begin(), of.end(), [&](const auto& one) { return one.get() == &store; });
      if (each != of.end()) {
        held = *each;
        of.erase(each);
      }
      if (of.empty()) stores.of.erase(found);
    }
  }
  if (held) held->watcher()->Close();
}

Unreachable::~Unreachable() = default;

std::pair<Status, std::string> Observation::Of(const Dependency& dependency) const {
  const auto text = [](const auto& texts, const auto& key, const std::string& otherwise) {
    const auto found = texts.find(key);
    return found == texts.end() ? otherwise : found->second;
  };
  if (const auto* promise = std::get_if<Promise>(&dependency)) {
    const auto found = promises.find(*promise);
    return {found == promises.end() ? Status::kNotYet : found->second, text(promise_causes, *promise, "")};
  }
  const auto& write = std::get<WriteId>(dependency);
  const auto found = statuses.find(write);
  const Status status = found == statuses.end() ? Status::kNotYet : found->second;
  return {status, text(causes, write, status == Status::kVisible ? caveat : "")};
}

void Wake::Set() {
  const std::lock_guard guard(lock_);
  set_ = true;
  changed_.notify_all();
}

void Wake::Clear() {
  const std::lock_guard guard(lock_);
  set_ = false;
}

bool Wake::IsSet() const {
  const std::lock_guard guard(lock_);
  return set_;
}

void Wake::Wait(double timeout_s) const {
  std::unique_lock guard(lock_);
  changed_.wait_for(guard, std::chrono::duration<double>(timeout_s), [this] { return set_; });
}

Endpoint::~Endpoint() = default;
Observation Endpoint::Promised(const std::set<Promise>&, double) {
  throw std::logic_error("this endpoint cannot ask for promises");
}
bool Endpoint::IsReplica(double) { return false; }
void Endpoint::Pause(double timeout_s, Wake& wake) { wake.Wait(timeout_s); }
void Endpoint::Rest() {}
void Endpoint::Interrupt() {}

Store::Store(std::string datastore, ReadsFrom reads_from, std::optional<ReadBarriers> barriers)
    : datastore_(std::move(datastore)), reads_from_(reads_from), barriers_(barriers) {
  if (datastore_.empty()) throw ConfigurationError("datastore must be a name that every service spells alike");
}
Store::~Store() = default;

WriteId Following(const std::string& datastore, const std::string& primary) {
  return {datastore, std::string(kPrimaryKey), primary, 0, true};
}

std::set<WriteId> Store::Fence(double) {
  throw Unreachable("the primary of '" + datastore_ + "' cannot be asked for its position");
}
std::optional<WriteId> Store::LogStart(const std::string&) const { return std::nullopt; }
bool Store::AbandonPromise(const Promise&, double) {
  throw ConfigurationError("no promise can be abandoned on '" + datastore_ + "' by this shim");
}
void Store::Close() { Unregister(*this); }
void Store::Forked() {
  Renew(lock_);
  Renew(watcher_);
  Renew(fencer_);
}
Clock& Store::clock() const { return SystemClock(); }

std::shared_ptr<Watcher> Store::watcher() {
  const std::lock_guard guard(lock_);
  if (!watcher_) watcher_ = std::make_shared<Watcher>(*this);
  return watcher_;
}

std::shared_ptr<Fencer> Store::fencer() {
  const std::lock_guard guard(lock_);
  if (!fencer_) fencer_ = std::make_shared<Fencer>(*this);
  return fencer_;
}

}  // namespace antipode
