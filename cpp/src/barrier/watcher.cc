#include "barrier/watcher.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <string_view>
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
/// Seconds for which a server that was not there is taken not to be.
constexpr double kAbsentS = 1.0;

/// Whether a client says that no server is there: refused, or a host or socket without address. A caller that has
/// another way to go then takes it at once. Clients keep no error of the system's, only its words or its number.
bool IsAbsent(std::string cause) {
  for (char& each : cause) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
  static constexpr std::string_view kNobody[] = {"connection refused",
                                                 "(111)",
                                                 "no such file or directory",
                                                 "unknown server host",
                                                 "can't resolve",
                                                 "failed to resolve",
                                                 "name or service not known",
                                                 "no address associated with hostname"};
  return std::any_of(std::begin(kNobody), std::end(kNobody),
                     [&](std::string_view each) { return cause.find(each) != std::string::npos; });
}

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
  const auto wanted = subscriber->Wanted(datastore_);
  if (wanted.empty()) return;
  std::string cause;
  {
    const std::lock_guard guard(lock_);
    cause = closed_ ? kClosed : Join(subscriber, wanted, is_checked);
    if (subscriber->Wanted(datastore_).empty()) subscribers_.Leave(subscriber);  // It ended meanwhile, elsewhere.
  }
  if (!cause.empty()) subscriber->Failed(datastore_, cause);
}

std::string Watcher::Join(const std::shared_ptr<Subscriber>& subscriber, const std::set<Dependency>& wanted,
                          bool is_checked) {
  const std::int64_t now_us = NowUs();
  if (running_) {
    is_checked_ = false;
    wake_.Set();
  } else {
    is_checked_ = is_checked;
    checked_us_ = is_checked ? std::optional(now_us) : std::nullopt;
    try {
      clock_.Spawn(shared_from_this());
    } catch (const std::system_error& error) {  // Nobody checks; who comes later tries again.
      return std::string("no thread: ") + error.what();
    }
    SetRunning(true);
  }
  subscribers_.Join(subscriber, wanted, now_us);
  return "";
}

void Watcher::Unsubscribe(const std::shared_ptr<Subscriber>& subscriber) {
  const std::lock_guard guard(lock_);
  subscribers_.Leave(subscriber);
  if (subscribers_.empty()) wake_.Set();
}

void Watcher::Fail(const std::function<void(Subscriber&)>& tell) {
  std::vector<Subscribers::One> waiting;
  {
    const std::lock_guard guard(lock_);
    checked_us_.reset();
    waiting = subscribers_.Failed();
  }
  for (const auto& each : waiting) tell(Subscribers::Of(each));
  const std::lock_guard guard(lock_);
  subscribers_.Settle(waiting, datastore_);
}

std::vector<std::int64_t> Watcher::Tell(const Observation& observation, std::optional<std::int64_t> first_us) {
  Subscribers::Told told;
  {
    const std::lock_guard guard(lock_);
    if (first_us) checked_us_ = first_us;
    told = subscribers_.Shown(observation, clock_.Now());
  }
  std::vector<Subscribers::One> all;
  for (const auto& [one, left_s] : told.whom) {
    if (left_s) Subscribers::Of(one).WaitedOn(*left_s);
    Subscribers::Of(one).Take(datastore_, told.observation);
    all.push_back(one);
  }
  const std::lock_guard guard(lock_);
  return subscribers_.Settle(all, datastore_);
}

void Watcher::Learn(std::vector<std::int64_t> ended, std::optional<std::int64_t> until_us, std::int64_t checked_us) {
  if (!until_us) return;
  ended.erase(std::remove_if(ended.begin(), ended.end(), [&](std::int64_t each) { return each > *until_us; }),
              ended.end());
  if (ended.empty()) return;
  std::sort(ended.begin(), ended.end());
  const std::int64_t joined_us = ended[ended.size() / 2];
  expectation_.Learn(*until_us - joined_us, checked_us - joined_us);
}

double Watcher::PausedS() {
  const std::int64_t now_us = NowUs();
  if (EndsPauses()) {
    due_us_ = now_us + static_cast<std::int64_t>(kSliceS * 1e6);
    return kSliceS;
  }
  if (subscribers_.empty()) return 0.0;
  due_us_ = expectation_.NextUs(now_us, subscribers_.joined());
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

bool Watcher::Absent() {
  const std::lock_guard guard(known_lock_);
  return absent_s_ && clock_.Now() - *absent_s_ < kAbsentS;
}

void Watcher::Miss(const std::string& cause) {
  const bool absent = IsAbsent(cause);
  {
    const std::lock_guard guard(known_lock_);
    away_ = cause;
    absent_s_ = absent ? std::optional(clock_.Now()) : std::nullopt;
  }
  if (!absent) return;
  WarnOnce("absent_server", datastore_, "",
           "no server of '" + datastore_ + "' is there, and reads that can go elsewhere do not wait: " + cause);
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
    absent_s_.reset();
    knowledge_.Learn(observation, clock_.Now());
    return observation;
  } catch (const Unreachable& error) {
    DropEndpoint();
    Miss(error.what());
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

bool Watcher::IsWaitedFor() {
  const std::lock_guard guard(lock_);
  if (subscribers_.empty()) SetRunning(false);
  return !subscribers_.empty();
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
  if (!IsWaitedFor()) {
    Rest();
    return std::nullopt;
  }
  std::set<Dependency> wanted;
  bool is_first = true;
  {
    const std::lock_guard guard(lock_);
    if (std::exchange(is_checked_, false) && !EndsPauses()) return PausedS();  // That pause needs a check of its own.
    is_first = !subscribers_.unasked();
    if (is_first) since_us_ = std::exchange(checked_us_, std::nullopt);
    wanted = subscribers_.Asks();
  }
  if (wanted.empty()) return 0.0;  // The last one has left at this moment.
  const std::int64_t checked_us = NowUs();
  Observation observation;
  try {
    const std::lock_guard guard(using_);
    observation = Look(wanted, kLookS);
  } catch (const Unreachable& error) {
    Count("poll_failed", datastore_);
    Fail([&](Subscriber& each) { each.Unreached(datastore_, error.what()); });
    return pacer_.BackoffS();
  } catch (...) {  // Whatever it is, nobody may hang on it.
    const std::string thrown = Thrown();
    WarnOnce("poll_failed_for_good", datastore_, thrown, "a poll of '" + datastore_ + "' failed for good: " + thrown);
    Fail([&](Subscriber& each) { each.Failed(datastore_, thrown); });
    return 0.0;
  }
  pacer_.Succeeded();
  auto ended = Tell(observation, is_first ? std::optional(checked_us) : std::nullopt);
  const std::lock_guard guard(lock_);
  const bool is_pushed = !is_woken && checked_us < due_us_ - kPushedUs;
  Learn(std::move(ended), is_pushed ? checked_us : since_us_, checked_us);
  return subscribers_.unasked() ? 0.0 : PausedS();
}

bool Watcher::EndsPauses() {
  const auto endpoint = Held();
  return endpoint && endpoint->Blocks() && (endpoint->PushesPromises() || !subscribers_.promised());
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
    left = subscribers_.Clear();
  }
  wake_.Set();
  if (const auto endpoint = Held()) endpoint->Interrupt();
  for (const auto& each : left) each->Failed(datastore_, kClosed);
  // Who makes a connection now releases it itself.
  const std::unique_lock guard(using_, std::chrono::duration<double>(2 * kLookS));
  if (guard.owns_lock()) DropEndpoint();
}

}  // namespace antipode
