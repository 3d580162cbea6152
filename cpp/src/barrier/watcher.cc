#include "barrier/watcher.h"

#include <algorithm>
#include <cmath>
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
/// A pause that ends so many microseconds before its time was ended by the server.
constexpr std::int64_t kPushedUs = 500;

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

void Watcher::Subscribe(const std::shared_ptr<Subscriber>& subscriber, bool is_checked) {
  std::string cause;
  {
    const std::lock_guard guard(lock_);
    cause = closed_ ? kClosed : Join(subscriber, is_checked);
  }
  if (!cause.empty()) subscriber->Failed(datastore_, cause);
}

std::string Watcher::Join(const std::shared_ptr<Subscriber>& subscriber, bool is_checked) {
  const std::int64_t now_us = NowUs();
  const bool is_new = subscribers_.try_emplace(subscriber, now_us).second;
  if (is_new) joined_.insert(now_us);
  if (running_) {
    is_checked_ = false;
    wake_.Set();
    return "";
  }
  is_checked_ = is_checked;
  checked_us_ = is_checked ? std::optional(now_us) : std::nullopt;
  try {
    clock_.Spawn(shared_from_this());
    SetRunning(true);
  } catch (const std::system_error& error) {  // Nobody checks; who comes later tries again.
    Leave(subscriber);
    return std::string("no thread: ") + error.what();
  }
  return "";
}

void Watcher::Unsubscribe(const std::shared_ptr<Subscriber>& subscriber) {
  const std::lock_guard guard(lock_);
  Leave(subscriber);
  if (subscribers_.empty()) wake_.Set();
}

std::optional<std::int64_t> Watcher::Leave(const std::shared_ptr<Subscriber>& subscriber) {
  const auto found = subscribers_.find(subscriber);
  if (found == subscribers_.end()) return std::nullopt;
  const std::int64_t joined_us = found->second;
  joined_.erase(joined_.find(joined_us));
  subscribers_.erase(found);
  return joined_us;
}

std::vector<std::int64_t> Watcher::Ended(const std::vector<std::shared_ptr<Subscriber>>& subscribers) {
  std::vector<std::int64_t> ended;
  for (const auto& each : subscribers) {
    if (!each->Wanted(datastore_).empty()) continue;
    if (const auto joined_us = Leave(each)) ended.push_back(*joined_us);
  }
  return ended;
}

void Watcher::Learn(std::vector<std::int64_t> ended, std::optional<std::int64_t> since_us, std::int64_t checked_us) {
  if (!since_us) return;
  ended.erase(std::remove_if(ended.begin(), ended.end(), [&](std::int64_t each) { return each > *since_us; }),
              ended.end());
  if (ended.empty()) return;
  std::sort(ended.begin(), ended.end());
  const std::int64_t joined_us = ended[ended.size() / 2];
  expectation_.Learn(*since_us - joined_us, checked_us - joined_us);
}

double Watcher::PausedS(bool ends_pauses) {
  const std::int64_t now_us = NowUs();
  if (ends_pauses) {
    due_us_ = now_us + static_cast<std::int64_t>(kSliceS * 1e6);
    return kSliceS;
  }
  if (joined_.empty()) return 0.0;
  due_us_ = expectation_.NextUs(now_us, joined_);
  return static_cast<double>(due_us_ - now_us) / 1e6;
}

std::int64_t Watcher::NowUs() const { return std::llround(clock_.Now() * 1e6); }

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
  std::vector<std::shared_ptr<Subscriber>> waiting;
  for (const auto& [each, joined_us] : subscribers_) waiting.push_back(each);
  Ended(waiting);
  waiting.erase(std::remove_if(waiting.begin(), waiting.end(),
                               [this](const auto& each) { return subscribers_.count(each) == 0; }),
                waiting.end());
  if (waiting.empty()) SetRunning(false);
  return waiting;
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
  const bool is_woken = wake_.IsSet();
  wake_.Clear();
  const auto subscribers = Waiting();
  if (subscribers.empty()) {
    Rest();
    return std::nullopt;
  }
  std::set<Dependency> wanted;
  for (const auto& each : subscribers) wanted.merge(each->Wanted(datastore_));
  if (wanted.empty()) return 0.0;
  std::optional<std::int64_t> since_us;
  const bool needs_check = EndsPauses(wanted);  // That pause needs a check of its own.
  {
    const std::lock_guard guard(lock_);
    if (std::exchange(is_checked_, false) && !needs_check) return PausedS(false);
    since_us = std::exchange(checked_us_, std::nullopt);
  }
  const std::int64_t checked_us = NowUs();
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
  pacer_.Succeeded();
  for (const auto& each : subscribers) each->Take(datastore_, observation);
  const bool ends_pauses = EndsPauses(wanted);
  const std::lock_guard guard(lock_);
  checked_us_ = checked_us;
  const bool is_pushed = !is_woken && checked_us < due_us_ - kPushedUs;
  Learn(Ended(subscribers), is_pushed ? checked_us : since_us, checked_us);
  return PausedS(ends_pauses);
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
  std::map<std::shared_ptr<Subscriber>, std::int64_t> left;
  {
    const std::lock_guard guard(lock_);
    closed_ = true;
    left.swap(subscribers_);
    joined_.clear();
  }
  wake_.Set();
  if (const auto endpoint = Held()) endpoint->Interrupt();
  for (const auto& [each, joined_us] : left) each->Failed(datastore_, kClosed);
  // Who makes a connection now releases it itself.
  const std::unique_lock guard(using_, std::chrono::duration<double>(2 * kLookS));
  if (guard.owns_lock()) DropEndpoint();
}

}  // namespace antipode
