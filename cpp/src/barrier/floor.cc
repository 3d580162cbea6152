#include "barrier/floor.h"

#include <algorithm>
#include <thread>

#include "barrier/registry.h"
#include "barrier/unmet.h"

namespace antipode {
namespace {

/// How many times as long a held read pauses while a watcher checks for it: that one may check another server.
constexpr double kRarely = 8;
/// Seconds that a check gets although the time is up.
constexpr double kLeastLookS = 0.05;

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

BarrierFloor::BarrierFloor(std::string datastore, std::set<Dependency> demanded, std::shared_ptr<Allowance> allowance,
                           const Policies& policies, Proofs proofs, const Clock& clock)
    : datastore_(std::move(datastore)),
      demanded_(std::move(demanded)),
      allowance_(std::move(allowance)),
      policies_(policies),
      clock_(clock),
      proofs_(std::move(proofs)) {}

std::shared_ptr<BarrierFloor> BarrierFloor::Raised(const BarrierFloor& later) const {
  auto both = demanded_;
  both.insert(later.demanded_.begin(), later.demanded_.end());
  const Proofs theirs = later.proofs();
  Proofs shown;
  for (const auto& [server, at_s] : proofs()) {
    const auto found = theirs.find(server);
    if (found != theirs.end()) shown[server] = std::min(at_s, found->second);
  }
  return std::make_shared<BarrierFloor>(datastore_, both, std::make_shared<Allowance>(later.LeftS()), later.policies_,
                                        shown, later.clock_);
}

std::shared_ptr<BarrierFloor> BarrierFloor::Without(const std::set<std::string>& ids) const {
  std::set<Dependency> left;
  for (const Dependency& each : demanded_) {
    const auto* promise = std::get_if<Promise>(&each);
    if (promise == nullptr || ids.count(promise->id) == 0) left.insert(each);
  }
  return std::make_shared<BarrierFloor>(datastore_, left, std::make_shared<Allowance>(LeftS()), policies_, proofs(),
                                        clock_);
}

BarrierFloor::Proofs BarrierFloor::proofs() const {
  const std::lock_guard guard(lock_);
  return proofs_;
}

bool BarrierFloor::Proved(const std::string& server, double within_s) const {
  const std::lock_guard guard(lock_);
  const auto found = proofs_.find(server);
  return found != proofs_.end() && clock_.Now() - found->second < within_s;
}

double BarrierFloor::LeftS() const { return allowance_->LeftS(clock_.Now()); }
double BarrierFloor::LeastLookS() const { return kLeastLookS; }
double BarrierFloor::LookS() const { return std::max(LeftS(), LeastLookS()); }

double BarrierFloor::BlockS(double longest_s) const {
  const double left_s = LeftS();
  return left_s > kLeastLookS ? std::min(longest_s, left_s) : 0;
}

Wait BarrierFloor::Begin() const {
  const double now_s = clock_.Now();
  return {{{datastore_, demanded_}}, {}, {}, policies_, now_s, clock_.UnixSeconds(), allowance_->LeftS(now_s)};
}

bool BarrierFloor::Accepts(const Observation& observation) {
  Wait wait = Begin();
  return Judge(wait, observation);
}

bool BarrierFloor::Judge(Wait& wait, const Observation& observation) {
  const double now_s = clock_.Now();
  wait.Record(datastore_, observation, now_s);
  if (!wait.Finished()) return false;
  if (const auto error = ErrorOf(wait.Result(now_s))) {
    Fail(*error);
  } else {
    Prove(observation.server, now_s);
  }
  return true;
}

bool BarrierFloor::EndsLate(const Wait& wait) {
  const double now_s = clock_.Now();
  if (now_s < wait.deadline_s()) return false;
  const auto error = ErrorOf(wait.Result(now_s));
  if (error) Fail(*error);
  return error != nullptr;
}

void BarrierFloor::Prove(const std::string& server, double now_s) {
  const std::lock_guard guard(lock_);
  proofs_[server] = now_s;
}

void BarrierFloor::Fail(const UnmetError& error) { Throw(error); }

void BarrierFloor::FailLate(Wait& wait, const Unreachable& cause) {
  const double now_s = clock_.Now();
  if (now_s < wait.deadline_s()) return;
  wait.Unreached(datastore_, cause.what(), now_s);
  if (const auto error = ErrorOf(wait.Result(now_s))) Fail(*error);
}

void BarrierFloor::Expire(const Unreachable& cause) {
  allowance_->UseUp();
  Wait wait = Begin();
  FailLate(wait, cause);
}

void BarrierFloor::FailSnapshot(const StaleSnapshot& error, const std::function<bool(const Floor&)>&) { throw error; }

void BarrierFloor::Hold(const Look& look, Store* watched) {
  HeldRead read(shared_from_this(), watched == nullptr ? nullptr : registry::WatcherBeside(*watched));
  try {
    while (const auto pause_s = read.Take(look(read.LookS()))) {
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

HeldRead::HeldRead(std::shared_ptr<BarrierFloor> floor, std::shared_ptr<Watcher> watcher)
    : floor_(std::move(floor)), watcher_(std::move(watcher)), wait_(floor_->Begin()) {
  floor_->allowance_->Begin(wait_.started_s());
}

HeldRead::~HeldRead() {
  floor_->allowance_->End(floor_->clock_.Now());
  if (!subscribed_) return;
  subscribed_->Give();
  watcher_->Unsubscribe(subscribed_);
}

double HeldRead::LookS() const { return std::max(wait_.deadline_s() - floor_->clock_.Now(), floor_->LeastLookS()); }

std::optional<double> HeldRead::Take(const Observation& observation) {
  if (floor_->Judge(wait_, observation) || floor_->EndsLate(wait_)) return std::nullopt;
  const double now_s = floor_->clock_.Now();
  double pause_s = pacer_.PauseS(now_s - wait_.started_s());
  if (watcher_ && !subscribed_) {
    subscribed_ = std::make_shared<Hint>(now_s, floor_->demanded_);
    watcher_->Subscribe(subscribed_);
  }
  hint_ = subscribed_ && !subscribed_->Given() ? subscribed_ : nullptr;
  if (hint_) pause_s *= kRarely;
  return std::min(pause_s, std::max(wait_.deadline_s() - now_s, 0.0));
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

void SetFloor(Scope& scope, const std::shared_ptr<BarrierFloor>& floor) {
  scope.inside().Attach(std::make_shared<FloorSet>(FloorSet::Floors{{floor->datastore(), floor}}));
}

std::shared_ptr<BarrierFloor> FloorIn(const Scope& scope, const std::string& datastore) {
  const auto held = scope.inside().Attached<FloorSet>();
  if (!held) return nullptr;
  const auto found = held->of().find(datastore);
  return found == held->of().end() ? nullptr : found->second;
}

}  // namespace antipode
