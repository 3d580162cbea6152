#include "virtual_clock.h"

#include <algorithm>

#include "barrier/watcher.h"

namespace antipode::agent {
namespace {

/// The virtual hour in which every script starts; it is part of the vectors' format.
constexpr double kHour = 500'000;

/// The latest that is said by now; none where nothing is.
template <typename Value>
std::optional<Value> Latest(const std::vector<std::pair<double, Value>>& timeline, double now_s) {
  std::optional<Value> latest;
  for (const auto& [at_s, value] : timeline) {
    if (at_s <= now_s) latest = value;
  }
  return latest;
}

/// Asks a primary of a virtual clock: the answer comes later than the question.
class SlowFencer final : public Fencer {
 public:
  explicit SlowFencer(FakeStore& store) : Fencer(store), fake_(store) {}
  std::optional<double> Step() override {
    if (!asking_ && Begin()) {
      asking_ = true;
      fake_.CountFence();
      return fake_.fence_s();
    }
    if (!asking_) return std::nullopt;
    asking_ = false;
    End();
    return 0.0;
  }

 private:
  FakeStore& fake_;
  bool asking_ = false;
};

}  // namespace

double VirtualClock::UnixSeconds() const { return kHour * 3'600 + now_s_; }

void VirtualClock::Spawn(const std::shared_ptr<Stepper>& stepper) { due_.emplace_back(stepper, now_s_); }

Later::Moment VirtualClock::At(double when_s, std::function<void()> action) {
  const Moment moment{std::max(when_s, now_s_), order_++};
  events_.emplace(moment, std::move(action));
  return moment;
}

void VirtualClock::Run() {
  const auto sooner = [](const auto& a, const auto& b) { return a.second < b.second; };
  while (!events_.empty() || !due_.empty()) {
    const double event_s = events_.empty() ? kNever : events_.begin()->first.first;
    const auto next = std::min_element(due_.begin(), due_.end(), sooner);
    const double step_s = next == due_.end() ? kNever : next->second;
    now_s_ = std::min(event_s, step_s);
    if (event_s <= step_s) {
      const auto action = events_.extract(events_.begin());
      action.mapped()();
    } else {
      const auto stepper = next->first;
      due_.erase(next);
      Step(stepper);
    }
    for (auto& [stepper, due_s] : due_) {
      if (stepper->Woken()) due_s = now_s_;
    }
  }
}

void VirtualClock::Step(const std::shared_ptr<Stepper>& stepper) {
  const auto delay_s = stepper->Step();
  if (!delay_s) return;
  // It may have been spawned anew while it ended.
  const auto again = std::find_if(due_.begin(), due_.end(), [&](const auto& each) { return each.first == stepper; });
  if (again == due_.end()) due_.emplace_back(stepper, now_s_ + *delay_s);
}

class FakeStore::FakeEndpoint final : public Endpoint {
 public:
  explicit FakeEndpoint(FakeStore& store) : store_(store), opened_s_(store.Now()) { ++store_.open_endpoints_; }
  ~FakeEndpoint() override { --store_.open_endpoints_; }

  [[nodiscard]] bool Pinned() const override { return store_.options_.pinned && !store_.LostSince(opened_s_); }
  [[nodiscard]] bool Blocks() const override { return store_.options_.blocks; }
  Observation Observe(const std::set<WriteId>& writes, double) override {
    RaiseIfLost();
    return store_.LookAt(writes, {});
  }
  Observation Promised(const std::set<Promise>& promises, double) override {
    RaiseIfLost();
    return store_.LookAt({}, promises);
  }

 private:
  void RaiseIfLost() {
    store_.RaiseIfDown();
    if (!store_.options_.pinned || Pinned()) return;
    ++store_.looks_;
    throw Unreachable("scripted to be replaced");
  }

  FakeStore& store_;
  double opened_s_;
};

FakeStore::FakeStore(std::string datastore, VirtualClock& clock, const FakeOptions& options)
    : Store(std::move(datastore), options.reads_from, options.barriers), clock_(clock), options_(options) {}

void FakeStore::Advance(const std::string& log, std::uint64_t position, double at_s) {
  positions_[log].emplace_back(at_s, position);
  Changed(at_s);
}

void FakeStore::SetStatus(const WriteId& write, Status status, double at_s) {
  statuses_[write].emplace_back(at_s, status);
  Changed(at_s);
}

void FakeStore::SetRecord(const Promise& promise, Status status, double at_s) {
  records_[promise].emplace_back(at_s, status);
  Changed(at_s);
}

void FakeStore::Changed(double at_s) {
  if (options_.push) clock_.At(at_s, [this] { watcher()->WakeUp(); });
}

void FakeStore::RaiseIfDown() {
  for (const auto& [from_s, until_s] : down_) {
    if (from_s > Now() || Now() >= until_s) continue;
    ++looks_;
    throw Unreachable("scripted to be down");
  }
}

bool FakeStore::LostSince(double opened_s) const {
  const auto changed = [&](const auto& each) { return opened_s < each.first && each.first <= Now(); };
  return std::any_of(servers_.begin(), servers_.end(), changed) || std::any_of(down_.begin(), down_.end(), changed);
}

std::string FakeStore::Server() const { return *Latest(servers_, Now()); }

Observation FakeStore::LookAt(const std::set<WriteId>& writes, const std::set<Promise>& promises) {
  ++looks_;
  if (Now() >= broken_from_s_) throw std::runtime_error("scripted to be broken");
  Observation observation;
  observation.server = Server();
  if (!promises.empty()) observation.server = Latest(records_servers_, Now()).value_or(observation.server);
  observation.eta_s = Latest(etas_, Now());
  for (const WriteId& each : writes) observation.statuses[each] = Judge(each);
  for (const Promise& each : promises) {
    observation.promises[each] = Latest(records_[each], Now()).value_or(Status::kNotYet);
  }
  return observation;
}

Status FakeStore::Judge(const WriteId& write) const {
  if (const auto scripted = statuses_.find(write); scripted != statuses_.end()) {
    if (const auto status = Latest(scripted->second, Now())) return *status;
  }
  const auto* number = std::get_if<std::uint64_t>(&write.version);
  const auto log = positions_.find(write.key);
  if (number == nullptr || log == positions_.end()) return Status::kNotYet;
  const auto position = Latest(log->second, Now());
  return position && *position >= *number ? Status::kVisible : Status::kNotYet;
}

std::unique_ptr<Endpoint> FakeStore::OpenEndpoint(double) {
  RaiseIfDown();
  return std::make_unique<FakeEndpoint>(*this);
}

std::set<WriteId> FakeStore::Fence(double timeout_s) {
  if (Now() >= primary_down_from_s_ || options_.fence_s > timeout_s) {
    throw Unreachable("the primary is scripted to be silent");
  }
  std::map<std::string, WriteId> latest;
  for (const auto& [at_s, position] : primary_) {
    if (at_s <= Now()) latest[position.key] = position;
  }
  std::set<WriteId> positions;
  for (const auto& [key, position] : latest) positions.insert(position);
  return positions;
}

std::optional<WriteId> FakeStore::LogStart(const std::string& key) const {
  if (!options_.unique_logs) return std::nullopt;
  return WriteId{datastore(), key, std::uint64_t{1}};
}

std::shared_ptr<Fencer> FakeStore::fencer() {
  if (!fencer_) fencer_ = std::make_shared<SlowFencer>(*this);
  return fencer_;
}

}  // namespace antipode::agent
