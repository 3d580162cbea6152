#include "barrier/floor.h"

#include <algorithm>
#include <thread>

#include "barrier/unmet.h"

namespace antipode {
namespace {

/// How many times as long a held read pauses while a watcher looks for it: that one may look at another server.
constexpr double kRarely = 8;
/// Seconds that a look gets although the time is up.
constexpr double kLeastLookS = 0.05;

}  // namespace

Floor::Floor(std::string datastore, std::set<Dependency> demanded, double timeout_s, const Policies& policies,
             const std::set<std::string>& proved_on, const Clock& clock)
    : datastore_(std::move(datastore)),
      demanded_(std::move(demanded)),
      policies_(policies),
      clock_(clock),
      left_s_(timeout_s) {
  for (const std::string& server : proved_on) proved_[server] = clock.Now();
}

double Floor::LeftS() const {
  const std::lock_guard guard(lock_);
  return left_s_;
}

std::shared_ptr<Floor> Floor::Raised(const Floor& later) const {
  auto both = demanded_;
  both.insert(later.demanded_.begin(), later.demanded_.end());
  auto raised =
      std::make_shared<Floor>(datastore_, both, later.LeftS(), later.policies_, std::set<std::string>(), later.clock_);
  std::map<std::string, double> theirs;
  {
    const std::lock_guard guard(later.lock_);
    theirs = later.proved_;
  }
  const std::lock_guard guard(lock_);
  for (const auto& [server, at_s] : proved_) {
    const auto found = theirs.find(server);
    if (found != theirs.end()) raised->proved_[server] = std::min(at_s, found->second);
  }
  return raised;
}

std::shared_ptr<Floor> Floor::Without(const std::set<std::string>& ids) const {
  std::set<Dependency> left;
  for (const Dependency& each : demanded_) {
    const auto* promise = std::get_if<Promise>(&each);
    if (promise == nullptr || ids.count(promise->id) == 0) left.insert(each);
  }
  auto without = std::make_shared<Floor>(datastore_, left, LeftS(), policies_, std::set<std::string>(), clock_);
  const std::lock_guard guard(lock_);
  without->proved_ = proved_;
  return without;
}

bool Floor::Proved(const std::string& server, double within_s) const {
  const std::lock_guard guard(lock_);
  const auto found = proved_.find(server);
  return found != proved_.end() && clock_.Now() - found->second < within_s;
}

Wait Floor::Begin(double now_s) const {
  return {{{datastore_, demanded_}}, {}, {}, policies_, now_s, clock_.UnixSeconds(), LeftS()};
}

bool Floor::Accepts(const Observation& observation) {
  Wait wait = Begin(clock_.Now());
  return Judge(wait, observation);
}

bool Floor::Judge(Wait& wait, const Observation& observation) {
  const double now_s = clock_.Now();
  wait.Record(datastore_, observation, now_s);
  if (!wait.Finished()) return false;
  if (const auto error = ErrorOf(wait.Result(now_s))) Throw(*error);
  const std::lock_guard guard(lock_);
  proved_[observation.server] = now_s;
  return true;
}

void Floor::Spend(const Wait& wait) {
  const double spent_s = clock_.Now() - wait.started_s();
  const std::lock_guard guard(lock_);
  left_s_ = std::max(left_s_ - spent_s, 0.0);
}

void Floor::Hold(const std::function<Observation(double)>& observe, const std::shared_ptr<Watcher>& watcher) {
  // A floor is shared by scope and reads; this one lives as long as its caller holds it.
  HeldRead read(std::shared_ptr<Floor>(std::shared_ptr<void>(), this), watcher);
  try {
    while (const auto pause_s = read.Take(observe(read.LookS()))) {
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

HeldRead::HeldRead(std::shared_ptr<Floor> floor, std::shared_ptr<Watcher> watcher)
    : floor_(std::move(floor)), watcher_(std::move(watcher)), wait_(floor_->Begin(floor_->clock_.Now())) {}

HeldRead::~HeldRead() {
  floor_->Spend(wait_);
  if (!subscribed_) return;
  subscribed_->Give();
  watcher_->Unsubscribe(subscribed_);
}

double HeldRead::LookS() const { return std::max(wait_.deadline_s() - floor_->clock_.Now(), kLeastLookS); }

std::optional<double> HeldRead::Take(const Observation& observation) {
  if (floor_->Judge(wait_, observation)) return std::nullopt;
  const double now_s = floor_->clock_.Now();
  const double left_s = wait_.deadline_s() - now_s;
  if (left_s <= 0) {
    if (const auto error = ErrorOf(wait_.Result(now_s))) Throw(*error);
  }
  double pause_s = pacer_.PauseS(now_s - wait_.started_s());
  if (watcher_ && !subscribed_) {
    subscribed_ = std::make_shared<Hint>(now_s, floor_->demanded_);
    watcher_->Subscribe(subscribed_);
  }
  hint_ = subscribed_ && !subscribed_->Given() ? subscribed_ : nullptr;
  if (hint_) pause_s *= kRarely;
  return std::min(pause_s, std::max(left_s, 0.0));
}

void HeldRead::Failed(const Unreachable& error) {
  const double now_s = floor_->clock_.Now();
  if (now_s < wait_.deadline_s()) return;
  wait_.Unreached(floor_->datastore_, error.what(), now_s);
  if (const auto unmet = ErrorOf(wait_.Result(now_s))) Throw(*unmet);
}

std::shared_ptr<const Attachment> FloorSet::Joined(const Attachment& later) const {
  auto of = of_;
  for (const auto& [datastore, floor] : static_cast<const FloorSet&>(later).of_) {
    auto& held = of[datastore];
    held = held ? held->Raised(*floor) : floor;
  }
  return std::make_shared<FloorSet>(std::move(of));
}

std::shared_ptr<const Attachment> FloorSet::Branched(const std::set<std::string>& own) const {
  auto of = of_;
  for (auto& [datastore, floor] : of) floor = floor->Without(own);
  return std::make_shared<FloorSet>(std::move(of));
}

void SetFloor(Scope& scope, const std::shared_ptr<Floor>& floor) {
  scope.inside().Attach(
      std::make_shared<FloorSet>(std::map<std::string, std::shared_ptr<Floor>>{{floor->datastore(), floor}}));
}

std::shared_ptr<Floor> FloorIn(const Scope& scope, const std::string& datastore) {
  const auto attached = scope.inside().Attached();
  if (!attached) return nullptr;
  const auto& of = static_cast<const FloorSet&>(*attached).of();
  const auto found = of.find(datastore);
  return found == of.end() ? nullptr : found->second;
}

}  // namespace antipode
