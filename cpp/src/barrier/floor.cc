#include "barrier/floor.h"

#include <algorithm>
#include <thread>

#include "barrier/registry.h"
#include "barrier/unmet.h"
#include "runtime/observers.h"

namespace antipode {
namespace {

/// How many times as long a held read pauses while a watcher checks for it: that one may check another server.
constexpr double kRarely = 8;
/// Seconds for which a server is not worth blocking.
constexpr double kLeastBlockS = 0.05;

}  // namespace

Floor::~Floor() = default;

std::set<WriteId> Floor::writes() const {
  std::set<WriteId> found;
  for (const Dependency& each : demanded()) {
    if (const auto* write = std::get_if<WriteId>(&each)) found.insert(*write);
  }
  return found;
}

std::set<Promise> Floor::promises() const {
  std::set<Promise> found;
  for (const Dependency& each : demanded()) {
    if (const auto* promise = std::get_if<Promise>(&each)) found.insert(*promise);
  }
  return found;
}

void StaleRead::Serve(const std::string& datastore, const AntipodeError& error) {
  const std::lock_guard guard(lock_);
  if (!served_) served_.emplace(datastore, error);
}

void StaleRead::Answered() {
  std::optional<std::pair<std::string, AntipodeError>> served;
  {
    const std::lock_guard guard(lock_);
    served.swap(served_);
  }
  if (served) CountServed(served->first, served->second);
}

void ServeStale(const std::string& datastore, const AntipodeError& error, StaleRead* stale) {
  if (stale == nullptr) {
    CountServed(datastore, error);
  } else {
    stale->Serve(datastore, error);
  }
}

ReadFloor::ReadFloor(std::string datastore, Demands demands, std::shared_ptr<const UnmetError> flaw, bool throws,
                     std::shared_ptr<StaleRead> stale, const Clock& clock)
    : datastore_(std::move(datastore)),
      demands_(std::move(demands)),
      flaw_(std::move(flaw)),
      throws_(throws),
      stale_(std::move(stale)),
      clock_(clock) {
  for (const auto& each : demands_) demanded_.insert(each->wanted().begin(), each->wanted().end());
}

bool ReadFloor::Proved(const std::string& server, double within_s) const {
  const double since_s = clock_.Now() - within_s;
  return std::all_of(demands_.begin(), demands_.end(),
                     [&](const auto& each) { return each->ProvedAfter(server, since_s); });
}

bool ReadFloor::Within(const Floor* other) const {
  const auto* floor = dynamic_cast<const ReadFloor*>(other);
  if (floor == nullptr) return false;
  const Demands& theirs = floor->demands_;
  return std::all_of(demands_.begin(), demands_.end(),
                     [&](const auto& each) { return std::find(theirs.begin(), theirs.end(), each) != theirs.end(); });
}

double ReadFloor::LeftS() const {
  double left_s = 0;
  for (const auto& each : demands_) left_s = std::max(left_s, each->allowance().LeftS(clock_.Now()));
  return left_s;
}

double ReadFloor::PollS() const {
  double look_s = LeftS();
  for (const auto& each : demands_) look_s = std::max(look_s, each->LeastLookS());
  return look_s;
}

double ReadFloor::BlockS(double longest_s) const {
  const double left_s = LeftS();
  return left_s > kLeastBlockS ? std::min(longest_s, left_s) : 0;
}

Wait ReadFloor::Begin(const Demand& demand) const {
  const double now_s = clock_.Now();
  return {{{datastore_, demand.wanted()}}, {}, {}, demand.policies(), now_s, clock_.UnixSeconds(),
          demand.allowance().LeftS(now_s)};
}

bool ReadFloor::Accepts(const Observation& observation) {
  for (const auto& each : demands_) {
    Wait wait = Begin(*each);
    if (!Judge(*each, wait, observation)) return false;
  }
  Pass();
  return true;
}

void ReadFloor::Pass() {
  if (!flaw_) return;
  if (throws_) Refuse(*flaw_);
  Count(*flaw_);
}

bool ReadFloor::Judge(Demand& demand, Wait& wait, const Observation& observation) {
  if (served_ && demand.Automatic()) return true;
  const double now_s = clock_.Now();
  wait.Record(datastore_, observation, now_s);
  if (!wait.Finished() && now_s < wait.deadline_s()) return false;
  if (const auto error = ErrorOf(wait.Result(now_s))) {
    Fail(demand, *error);
  } else {
    demand.Prove(observation.server, now_s);
  }
  return true;
}

void ReadFloor::Fail(const Demand& demand, const UnmetError& error) {
  if (demand.Raises()) Refuse(error);
  Serve(error);
}

void ReadFloor::FailLate(const Demand& demand, Wait& wait, const Unreachable& cause) const {
  const double now_s = clock_.Now();
  if (!demand.Raises() || now_s < wait.deadline_s()) return;  // The client's own error follows.
  wait.Unreached(datastore_, cause.what(), now_s);
  if (const auto error = ErrorOf(wait.Result(now_s))) Refuse(*error);
}

void ReadFloor::Serve(const AntipodeError& error) {
  served_ = true;
  Count(error);
}

void ReadFloor::Count(const AntipodeError& error) {
  if (!counted_.exchange(true)) ServeStale(datastore_, error, stale_.get());
}

void ReadFloor::Expire(const Unreachable& cause) {
  for (const auto& each : demands_) {
    each->allowance().UseUp();
    Wait wait = Begin(*each);
    FailLate(*each, wait, cause);
  }
}

void ReadFloor::FailSnapshot(const StaleSnapshot& error, const std::function<bool(const Floor&)>& shows) {
  const bool raises = std::any_of(demands_.begin(), demands_.end(),
                                  [](const auto& each) { return each->Automatic() && each->Raises(); });
  if (raises) throw error;
  Demands called;
  std::copy_if(demands_.begin(), demands_.end(), std::back_inserter(called),
               [](const auto& each) { return !each->Automatic(); });
  if (called.size() == demands_.size()) throw error;
  if (!called.empty() && !shows(ReadFloor(datastore_, called, nullptr, false, nullptr, clock_))) throw error;
  Serve(error);
}

void ReadFloor::Hold(const Look& look, Store* watched) {
  const bool over =
      served_ && std::all_of(demands_.begin(), demands_.end(), [](const auto& each) { return each->Automatic(); });
  if (over) return;  // No demand is left that a check may show.
  HeldRead read(shared_from_this(), watched == nullptr ? nullptr : registry::SharedWatcher(*watched));
  try {
    while (const auto pause_s = read.Take(look(read.PollS()))) {
      if (read.hint()) {
        read.hint()->Pause(*pause_s);
      } else {
        std::this_thread::sleep_for(std::chrono::duration<double>(*pause_s));
      }
    }
  } catch (const Unreachable& error) {
    read.Failed(error);
    throw;
  }
}

std::set<Dependency> Hint::Wanted(const std::string&) {
  const std::lock_guard guard(lock_);
  return Given() ? std::set<Dependency>() : left_;
}

void Hint::Take(const std::string&, const Observation& observation) {
  const std::lock_guard guard(lock_);
  for (auto each = left_.begin(); each != left_.end();) {
    each = IsPending(observation.Of(*each).first) ? std::next(each) : left_.erase(each);
  }
  if (left_.empty()) Give();
}

HeldRead::HeldRead(std::shared_ptr<ReadFloor> floor, std::shared_ptr<Watcher> watcher)
    : floor_(std::move(floor)),
      watcher_(std::move(watcher)),
      demand_(floor_->demands().front()),
      wait_(floor_->Begin(*demand_)) {
  demand_->allowance().Begin(wait_.started_s());
}

void HeldRead::End() {
  demand_->allowance().End(floor_->clock_.Now());
  if (!subscribed_) return;
  subscribed_->Give();
  watcher_->Unsubscribe(subscribed_);
  subscribed_ = nullptr;
}

double HeldRead::PollS() const { return std::max(wait_.deadline_s() - floor_->clock_.Now(), demand_->LeastLookS()); }

std::optional<double> HeldRead::Take(const Observation& observation) {
  for (const auto& each : floor_->demands()) {
    if (each == demand_) {
      if (floor_->Judge(*each, wait_, observation)) continue;
      return PauseS();
    }
    Wait wait = floor_->Begin(*each);
    if (floor_->Judge(*each, wait, observation)) continue;
    End();
    demand_ = each;
    wait_ = std::move(wait);
    demand_->allowance().Begin(wait_.started_s());
    return PauseS();
  }
  floor_->Pass();
  return std::nullopt;
}

double HeldRead::PauseS() {
  const double now_s = floor_->clock_.Now();
  double pause_s = Pacer::PauseS(now_s - wait_.started_s());
  if (watcher_ && !subscribed_) {
    subscribed_ = std::make_shared<Hint>(demand_->wanted());
    watcher_->Subscribe(subscribed_);
  }
  hint_ = subscribed_ && !subscribed_->Given() ? subscribed_ : nullptr;
  if (hint_) pause_s *= kRarely;
  return std::min(pause_s, std::max(wait_.deadline_s() - now_s, 0.0));
}

}  // namespace antipode
