#include "barrier/watcher.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "runtime/forks.h"
#include "runtime/observers.h"
#include "runtime/thrown.h"

namespace antipode {
namespace {

/// The longest pause at a server that ends it; what it cannot say is checked then.
constexpr double kSliceS = 1.0;
/// Seconds for which a server that did not know a log is taken not to know it.
constexpr double kUnknownS = 30;
/// Writes of unknown logs that are remembered: the names of logs come from outside.
constexpr std::size_t kMostUnknown = 1'000;
/// What the second half of a check gets at least: clients take 0 for no limit.
constexpr double kLeastLookS = 0.005;

void SortOut(const std::set<Dependency>& wanted, std::set<WriteId>& writes, std::set<Promise>& promises) {
  for (const Dependency& each : wanted) {
    if (const auto* write = std::get_if<WriteId>(&each)) {
      writes.insert(*write);
    } else {
      promises.insert(std::get<Promise>(each));
    }
  }
}

struct AtWork {
  std::mutex lock;
  std::multiset<std::string> names;
};

AtWork& TheWork() {
  static auto* work = [] {
    auto* made = new AtWork;
    HoldWhileForking(ForkRank::kWatchers, made->lock, [] { TheWork().names.clear(); });
    return made;
  }();
  return *work;
}

}  // namespace

void TimedMutex::lock() {
  std::unique_lock guard(lock_);
  free_.wait(guard, [this] { return !held_; });
  held_ = true;
}

bool TimedMutex::try_lock() {
  const std::lock_guard guard(lock_);
  return !std::exchange(held_, true);
}

bool TimedMutex::try_lock_for(std::chrono::duration<double> timeout) {
  std::unique_lock guard(lock_);
  if (!free_.wait_for(guard, timeout, [this] { return !held_; })) return false;
  held_ = true;
  return true;
}

void TimedMutex::unlock() {
  const std::lock_guard guard(lock_);
  held_ = false;
  free_.notify_one();
}

std::vector<std::string> WatchersAtWork() {
  AtWork& work = TheWork();
  const std::lock_guard guard(work.lock);
  return {work.names.begin(), work.names.end()};
}

Observation ObserveAll(Endpoint& endpoint, const std::set<Dependency>& wanted, double deadline_s, const Clock& clock) {
  std::set<WriteId> writes;
  std::set<Promise> promises;
  SortOut(wanted, writes, promises);
  const auto left_s = [&] { return std::max(deadline_s - clock.Now(), kLeastLookS); };
  if (promises.empty()) return endpoint.Observe(writes, left_s());
  Observation records = endpoint.Promised(promises, left_s());
  for (const Promise& each : promises) records.promises.try_emplace(each, Status::kNotYet);
  if (writes.empty()) return records;
  Observation shown = endpoint.Observe(writes, left_s());
  if (shown.server != records.server) throw Unreachable("the server's history changed during the poll");
  shown.promises = std::move(records.promises);
  shown.promise_causes = std::move(records.promise_causes);
  return shown;
}

void Knowledge::Learn(const Observation& observation, double now_s) {
  if (observation.server != server_) {
    Forget();
    server_ = observation.server;
  }
  caveat_ = observation.caveat;
  for (const auto& [write, status] : observation.statuses) {
    NoteUnknown(write, status, now_s);
    if (status == Status::kVisible) {
      Add(write);
    } else if (Has(write)) {  // A position that regresses drops everything.
      Forget();
      return;
    }
  }
  for (const auto& [promise, status] : observation.promises) {
    if (status == Status::kVisible) {
      fulfilled_.insert(promise.id);
    } else if (Has(promise)) {
      Forget();
      return;
    }
  }
}

std::optional<Observation> Knowledge::Recall(const std::set<Dependency>& wanted) const {
  Observation known;
  for (const Dependency& each : wanted) {
    if (!Has(each)) continue;
    if (const auto* write = std::get_if<WriteId>(&each)) {
      known.statuses.emplace(*write, Status::kVisible);
    } else {
      known.promises.emplace(std::get<Promise>(each), Status::kVisible);
    }
  }
  if (known.statuses.empty() && known.promises.empty()) return std::nullopt;
  known.server = server_;
  known.caveat = caveat_;
  return known;
}

bool Knowledge::Lacks(const WriteId& write, double now_s) const {
  const auto found = unknown_.find(write);
  return found != unknown_.end() && now_s - found->second < kUnknownS;
}

void Knowledge::NoteUnknown(const WriteId& write, Status status, double now_s) {
  unknown_.erase(write);
  if (status != Status::kUnknownLog) return;
  if (unknown_.size() >= kMostUnknown) unknown_.clear();
  unknown_[write] = now_s;
}

void Knowledge::Forget() { *this = Knowledge(); }

void Knowledge::Add(const WriteId& write) {
  if (const auto* number = std::get_if<std::uint64_t>(&write.version)) {
    auto& position = positions_[{write.datastore, write.key}];
    position = std::max(position, *number);
  } else {
    if (write.key != kPrimaryKey) opaque_.insert(write);  // Which primary it follows is asked each time.
  }
}

bool Knowledge::Has(const Dependency& wanted) const {
  if (const auto* promise = std::get_if<Promise>(&wanted)) return fulfilled_.count(promise->id) != 0;
  const auto& write = std::get<WriteId>(wanted);
  const auto* number = std::get_if<std::uint64_t>(&write.version);
  if (number == nullptr) return opaque_.count(write) != 0;
  const auto found = positions_.find({write.datastore, write.key});
  return found != positions_.end() && *number <= found->second;
}

Watcher::Watcher(Store& store) : datastore_(store.datastore()), store_(store.weak_from_this()), clock_(store.clock()) {}

void Watcher::Subscribe(const std::shared_ptr<Subscriber>& subscriber) {
  std::string cause;
  {
    const std::lock_guard guard(lock_);
    if (closed_) {
      cause = kClosed;
    } else {
      if (std::find(subscribers_.begin(), subscribers_.end(), subscriber) == subscribers_.end()) {
        subscribers_.push_back(subscriber);
      }
      if (running_) {
        wake_.Set();
      } else {
        try {
          clock_.Spawn(shared_from_this());
          SetRunning(true);
        } catch (const std::system_error& error) {  // Nobody checks; who comes later tries again.
          subscribers_.erase(std::remove(subscribers_.begin(), subscribers_.end(), subscriber), subscribers_.end());
          cause = std::string("no thread: ") + error.what();
        }
      }
    }
  }
  if (!cause.empty()) subscriber->Failed(datastore_, cause);
}

void Watcher::Unsubscribe(const std::shared_ptr<Subscriber>& subscriber) {
  const std::lock_guard guard(lock_);
  subscribers_.erase(std::remove(subscribers_.begin(), subscribers_.end(), subscriber), subscribers_.end());
  if (subscribers_.empty()) wake_.Set();
}

std::shared_ptr<Endpoint> Watcher::Held() {
  const std::lock_guard guard(known_lock_);
  return endpoint_;
}

std::optional<Observation> Watcher::Recall(const std::set<Dependency>& wanted) {
  const std::lock_guard guard(known_lock_);
  if (!endpoint_ || !endpoint_->Pinned()) return std::nullopt;
  return knowledge_.Recall(wanted);
}

bool Watcher::Lacks(const WriteId& write) {
  const std::lock_guard guard(known_lock_);
  return knowledge_.Lacks(write, clock_.Now());
}

std::string Watcher::Away() {
  const std::lock_guard guard(known_lock_);
  return away_;
}

std::optional<Observation> Watcher::TryLook(const std::set<Dependency>& wanted, double timeout_s) {
  const auto store = store_.lock();  // Lives until the check is over, whoever closes it meanwhile.
  const std::unique_lock<TimedMutex> guard(using_, std::try_to_lock);
  const auto endpoint = Held();
  if (!guard.owns_lock() || !endpoint || !endpoint->EndsInTime() || IsClosed()) return std::nullopt;
  return Look(wanted, timeout_s);
}

Observation Watcher::Look(const std::set<Dependency>& wanted, double timeout_s) {
  Count("polls", datastore_);
  try {
    auto endpoint = Held();
    if (!endpoint) {
      const auto store = store_.lock();
      if (!store) throw Unreachable(kClosed);
      endpoint = store->OpenEndpoint(kConnectS);
      const std::lock_guard guard(known_lock_);
      endpoint_ = endpoint;
    }
    Observation observation = ObserveAll(*endpoint, wanted, clock_.Now() + timeout_s, clock_);
    const std::lock_guard guard(known_lock_);
    away_.clear();
    knowledge_.Learn(observation, clock_.Now());
    return observation;
  } catch (const Unreachable& error) {
    DropEndpoint();
    const std::lock_guard guard(known_lock_);
    away_ = error.what();
    throw;
  } catch (...) {
    DropEndpoint();
    const std::lock_guard guard(known_lock_);
    away_.clear();
    throw;
  }
}

void Watcher::DropEndpoint() {
  std::shared_ptr<Endpoint> dropped;
  const std::lock_guard guard(known_lock_);
  dropped.swap(endpoint_);
  knowledge_.Forget();
}

std::vector<std::shared_ptr<Subscriber>> Watcher::Waiting() {
  const std::lock_guard guard(lock_);
  subscribers_.erase(std::remove_if(subscribers_.begin(), subscribers_.end(),
                                    [this](const auto& each) { return each->Wanted(datastore_).empty(); }),
                     subscribers_.end());
  if (subscribers_.empty()) SetRunning(false);
  return subscribers_;
}

void Watcher::SetRunning(bool running) {
  running_ = running;
  AtWork& work = TheWork();
  const std::lock_guard guard(work.lock);
  const std::string name = "antipode-watch-" + datastore_;
  if (running) {
    work.names.insert(name);
  } else {
    work.names.erase(work.names.find(name));
  }
}

std::optional<double> Watcher::Step() {
  const auto store = store_.lock();  // Lives until what this step opened is dropped.
  const auto pause_s = Work();
  if (IsClosed()) {
    const std::lock_guard guard(using_);
    DropEndpoint();
  }
  return pause_s;
}

bool Watcher::IsClosed() {
  const std::lock_guard guard(lock_);
  return closed_;
}

std::optional<double> Watcher::Work() {
  wake_.Clear();
  const auto subscribers = Waiting();
  if (subscribers.empty()) {
    Rest();
    return std::nullopt;
  }
  std::set<Dependency> wanted;
  double youngest_s = 0;
  for (const auto& each : subscribers) {
    wanted.merge(each->Wanted(datastore_));
    youngest_s = std::max(youngest_s, each->since_s());
  }
  if (wanted.empty()) return 0.0;
  Observation observation;
  try {
    const std::lock_guard guard(using_);
    observation = Look(wanted, kLookS);
  } catch (const Unreachable& error) {
    Count("poll_failed", datastore_);
    for (const auto& each : subscribers) each->Unreached(datastore_, error.what());
    return pacer_.BackoffS();
  } catch (...) {  // Whatever it is, nobody may hang on it.
    const std::string thrown = Thrown();
    WarnOnce("poll_failed_for_good", datastore_, thrown, "a poll of '" + datastore_ + "' failed for good: " + thrown);
    for (const auto& each : subscribers) each->Failed(datastore_, thrown);
    return 0.0;
  }
  for (const auto& each : subscribers) each->Take(datastore_, observation);
  if (EndsPauses(wanted)) return kSliceS;
  return pacer_.PauseS(clock_.Now() - youngest_s);
}

bool Watcher::EndsPauses(const std::set<Dependency>& wanted) {
  const auto endpoint = Held();
  if (!endpoint || !endpoint->Blocks()) return false;
  return endpoint->PushesPromises() || std::none_of(wanted.begin(), wanted.end(), [](const Dependency& each) {
           return std::holds_alternative<Promise>(each);
         });
}

void Watcher::Pause(double timeout_s) {
  if (timeout_s <= 0) return;
  const std::lock_guard guard(using_);
  const auto endpoint = Held();
  if (!endpoint) {
    wake_.Wait(timeout_s);
    return;
  }
  try {
    endpoint->Pause(timeout_s, wake_);
  } catch (...) {
    Thrown();
    DropEndpoint();  // The next check connects again and shows it.
  }
}

/// Informs the endpoint that nobody waits, unless somebody came meanwhile.
void Watcher::Rest() {
  const std::lock_guard guard(using_);
  {
    const std::lock_guard waiting(lock_);
    if (running_ || closed_) return;
  }
  const auto endpoint = Held();
  if (!endpoint) return;
  try {
    endpoint->Rest();
  } catch (...) {
    Thrown();
    DropEndpoint();
  }
}

void Watcher::Close() {
  std::vector<std::shared_ptr<Subscriber>> left;
  {
    const std::lock_guard guard(lock_);
    closed_ = true;
    left.swap(subscribers_);
  }
  wake_.Set();
  if (const auto endpoint = Held()) endpoint->Interrupt();
  for (const auto& each : left) each->Failed(datastore_, kClosed);
  // Who makes a connection now releases it itself.
  const std::unique_lock guard(using_, std::chrono::duration<double>(2 * kLookS));
  if (guard.owns_lock()) DropEndpoint();
}

}  // namespace antipode
