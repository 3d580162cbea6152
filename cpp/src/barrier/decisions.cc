#include "barrier/decisions.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

namespace antipode {
namespace {

constexpr double kShare = 0.02;
constexpr double kLeastS = 0.001;
constexpr double kJitter = 0.25;
constexpr double kLeastBackoffS = 0.010;
constexpr double kMostBackoffS = 1.0;
constexpr int kMostFailures = 16;
/// The cause of what was visible, while it is asked whether it still is.
constexpr const char* kDoubted = "it was visible, and was to be seen once more before the barrier succeeds";

double Jittered(double longest_s) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return std::uniform_real_distribution<double>(longest_s * (1 - kJitter), longest_s)(random);
}

bool InOrder(const Outcome& a, const Outcome& b) {
  const auto rank = [](const Dependency& each) {
    const auto* promise = std::get_if<Promise>(&each);
    return std::tuple(DatastoreOf(each), promise ? promise->id : std::get<WriteId>(each).key, promise != nullptr);
  };
  const auto left = rank(a.dependency);
  const auto right = rank(b.dependency);
  return left != right ? left < right : a.dependency < b.dependency;
}

}  // namespace

Policies Policies::Of(const Settings& settings, std::uint64_t hour) {
  return {true, settings.on_unknown, settings.on_incomplete, settings.horizon.count() / 3'600, hour};
}

Outcome Policies::Settle(Outcome outcome) const {
  const auto* write = std::get_if<WriteId>(&outcome.dependency);
  if (outcome.status == Status::kUnknownLog && write != nullptr && write->written_hour > 0 &&
      static_cast<double>(write->written_hour) < static_cast<double>(hour) - horizon_h) {
    outcome.status = Status::kAged;
    return outcome;
  }
  const bool unknown = outcome.status == Status::kUnknownStore || outcome.status == Status::kUnknownLog ||
                       outcome.status == Status::kUndecidable;
  if (unknown && on_unknown) outcome.reported = *on_unknown == Policy::kReport;
  return outcome;
}

std::pair<Status, std::string> Policies::Judge(const Promise& promise, double unix_s) const {
  const double late_s = unix_s - static_cast<double>(promise.expires_s);
  if (late_s <= kPromiseGraceS) return {Status::kNotYet, ""};
  // Records last until then: afterwards their absence says nothing.
  if (late_s > horizon_h * 3'600) return {Status::kAged, "its record would be gone by now"};
  return {Status::kAbandoned, "it expired unfulfilled"};
}

Wait::Wait(Pending&& pending, const std::vector<Outcome>& settled, std::set<Incomplete> incomplete,
           const Policies& policies, double now_s, double unix_s, double timeout_s)
    : policies_(policies),
      incomplete_(std::move(incomplete)),
      started_s_(now_s),
      timeout_s_(timeout_s),
      unix_at_zero_s_(unix_s - now_s),
      late_s_(now_s) {
  for (auto& [datastore, asked] : pending) {
    for (const Dependency& each : asked) outcomes_[each] = {each, Status::kNotYet, 0, "", "", false};
    if (!asked.empty()) pending_.emplace(datastore, std::move(asked));
  }
  for (const Outcome& outcome : settled) Settle(outcome);
}

void Wait::Settle(const Outcome& outcome) {
  Outcome settled = policies_.Settle(outcome);
  if (!settled.met() && !IsPending(settled.status)) fatal_ = true;
  outcomes_[settled.dependency] = std::move(settled);
}

bool Wait::Finished() const {
  return fatal_ || (!incomplete_.empty() && policies_.on_incomplete == Policy::kRaise) || pending_.empty();
}

void Wait::Discharge(const std::string& datastore, const std::set<WriteId>& writes, const std::set<Incomplete>& marks) {
  for (const Incomplete& mark : marks) incomplete_.erase(mark);
  for (const WriteId& write : writes) {
    pending_[datastore].insert(write);
    outcomes_.try_emplace(write, Outcome{write, Status::kNotYet, 0, "", "", false});
  }
}

void Wait::Record(const std::string& datastore, const Observation& observation, double now_s) {
  const auto found = pending_.find(datastore);
  if (found == pending_.end()) return;
  if (observation.eta_s) etas_[datastore] = *observation.eta_s;
  bool late = false;
  for (const Dependency& each : found->second) late = Judge(each, observation, now_s) || late;
  if (late) {
    WaitOn(now_s);
    return;
  }
  met_[datastore] = {now_s, std::move(found->second)};
  pending_.erase(found);
  if (pending_.empty()) Doubt(now_s);
}

bool Wait::Judge(const Dependency& dependency, const Observation& observation, double now_s) {
  auto [status, cause] = observation.Of(dependency);
  const auto* promise = std::get_if<Promise>(&dependency);
  if (promise != nullptr && observation.promises.count(*promise) != 0 && status == Status::kNotYet) {
    auto [judged, why] = policies_.Judge(*promise, now_s + unix_at_zero_s_);
    status = judged;
    if (!why.empty()) cause = why;
  }
  const Outcome& held = outcomes_[dependency];
  if (held.met() && held.status == status && held.server == observation.server) return false;
  Settle({dependency, status, now_s - started_s_, observation.server, cause, false});
  return IsPending(status);
}

void Wait::WaitOn(double now_s) {
  late_s_ = now_s;
  fresh_from_s_.reset();
}

/// Asks again for what was met before others had to be waited for.
void Wait::Doubt(double now_s) {
  if (!fresh_from_s_) fresh_from_s_ = std::max(late_s_, now_s - kMostPauseS);
  for (const auto& [datastore, met] : met_) {
    if (met.at_s >= *fresh_from_s_) continue;
    pending_[datastore] = met.asked;
    for (const Dependency& each : met.asked) {
      outcomes_[each].status = Status::kNotYet;
      outcomes_[each].cause = kDoubted;
    }
  }
}

void Wait::Unreached(const std::string& datastore, const std::string& cause, double now_s) {
  const auto found = pending_.find(datastore);
  if (found == pending_.end()) return;
  WaitOn(now_s);
  for (const Dependency& each : found->second) {
    outcomes_[each] = {each, Status::kUnreachable, now_s - started_s_, "", cause, false};
  }
}

void Wait::Failed(const std::string& datastore, const std::string& cause, double now_s) {
  const auto found = pending_.extract(datastore);
  if (!found.empty()) {
    for (const Dependency& each : found.mapped()) {
      Settle({each, Status::kUndecidable, now_s - started_s_, "", cause, false});
    }
  }
  if (pending_.empty()) Doubt(now_s);
}

BarrierResult Wait::Result(double now_s) const {
  BarrierResult result;
  for (const auto& [dependency, outcome] : outcomes_) result.outcomes.push_back(outcome);
  std::sort(result.outcomes.begin(), result.outcomes.end(), InOrder);
  for (const auto& [datastore, eta_s] : etas_) {
    if (pending_.count(datastore) != 0) result.eta_s = std::max(result.eta_s.value_or(eta_s), eta_s);
  }
  result.waited_s = now_s - started_s_;
  result.incomplete = incomplete_;
  result.incomplete_ok = policies_.on_incomplete == Policy::kReport;
  return result;
}

double Pacer::PauseS(double waited_s) { return Jittered(std::min(std::max(kLeastS, waited_s * kShare), kMostPauseS)); }

double Pacer::BackoffS() {
  const double longest_s = std::min(kLeastBackoffS * std::ldexp(1.0, failures_), kMostBackoffS);
  failures_ = std::min(failures_ + 1, kMostFailures);
  return Jittered(longest_s);
}

}  // namespace antipode
