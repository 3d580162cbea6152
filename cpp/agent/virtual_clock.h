// Time that passes only between events, and a store that follows a script on it.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "antipode/shim.h"
#include "barrier/fence.h"
#include "runtime/background.h"
#include "runtime/clock.h"

namespace antipode::agent {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// Everything runs in the caller's thread. Starts at 0 seconds of the Unix hour of level 4.
class VirtualClock final : public Clock, public Later {
 public:
  [[nodiscard]] double Now() const override { return now_s_; }
  [[nodiscard]] double UnixSeconds() const override;
  void Spawn(const std::shared_ptr<Stepper>& stepper) override;
  /// Does something when it is so late; in the past means now.
  Moment At(double when_s, std::function<void()> action) override;
  void Forget(const Moment& moment) override { events_.erase(moment); }
  /// Lets time pass until nothing is left to happen.
  void Run();

 private:
  void Step(const std::shared_ptr<Stepper>& stepper);

  double now_s_ = 0;
  std::uint64_t order_ = 0;
  std::map<Moment, std::function<void()>> events_;
  std::vector<std::pair<std::shared_ptr<Stepper>, double>> due_;  ///< In the order in which they were spawned.
};

struct FakeOptions {
  ReadsFrom reads_from = ReadsFrom::kPrimary;
  bool waitable = true;
  bool floors = false;
  bool polls = true;
  bool pinned = false;
  bool push = false;
  bool blocks = false;
  bool promises = false;
  bool unique_logs = false;
  bool fences = false;
  double fence_s = 0;
  std::optional<ReadBarriers> barriers;
};

class FakeStore final : public Store {
 public:
  FakeStore(std::string datastore, VirtualClock& clock, const FakeOptions& options);

  // What it does when.
  void Advance(const std::string& log, std::uint64_t position, double at_s);
  void SetStatus(const WriteId& write, Status status, double at_s);
  void SetRecord(const Promise& promise, Status status, double at_s);
  void ReplaceServer(const std::string& server, double at_s) { servers_.emplace_back(at_s, server); }
  void MoveRecords(const std::string& server, double at_s) { records_servers_.emplace_back(at_s, server); }
  void TakeDown(double from_s, double until_s) { down_.emplace_back(from_s, until_s); }
  void BreakDown(double from_s) { broken_from_s_ = from_s; }
  void Freeze(double from_s) { frozen_from_s_ = from_s; }
  void Estimate(double eta_s, double at_s) { etas_.emplace_back(at_s, eta_s); }
  void MovePrimary(const WriteId& position, double at_s) { primary_.emplace_back(at_s, position); }
  void TakePrimaryDown(double from_s) { primary_down_from_s_ = from_s; }

  [[nodiscard]] int looks() const { return looks_; }
  [[nodiscard]] int fences() const { return fences_; }
  [[nodiscard]] int open_endpoints() const { return open_endpoints_; }
  [[nodiscard]] bool Frozen() const { return Now() >= frozen_from_s_; }
  [[nodiscard]] double fence_s() const { return options_.fence_s; }
  void CountFence() { ++fences_; }
  /// Throws Unreachable while it is down.
  void RaiseIfDown();
  /// The incarnation that answers now.
  [[nodiscard]] std::string Server() const;
  Observation LookAt(const std::set<WriteId>& writes, const std::set<Promise>& promises);

  [[nodiscard]] bool Waitable() const override { return options_.waitable; }
  [[nodiscard]] bool Floors() const override { return options_.floors; }
  [[nodiscard]] bool CanPoll() const override { return options_.polls; }
  [[nodiscard]] bool Fences() const override { return options_.fences; }
  [[nodiscard]] bool Promises() const override { return options_.promises; }
  std::unique_ptr<Endpoint> OpenEndpoint(double timeout_s) override;
  std::set<WriteId> Fence(double timeout_s) override;
  [[nodiscard]] std::optional<WriteId> LogStart(const std::string& key) const override;
  [[nodiscard]] Clock& clock() const override { return clock_; }
  std::shared_ptr<Fencer> fencer() override;

 private:
  class FakeEndpoint;
  template <typename Value>
  using Timeline = std::vector<std::pair<double, Value>>;

  [[nodiscard]] double Now() const { return clock_.Now(); }
  void Changed(double at_s);
  [[nodiscard]] Status Judge(const WriteId& write) const;
  /// Whether a connection that was opened then has broken.
  [[nodiscard]] bool LostSince(double opened_s) const;

  VirtualClock& clock_;
  FakeOptions options_;
  std::map<WriteId, Timeline<Status>> statuses_;
  std::map<Promise, Timeline<Status>> records_;
  std::map<std::string, Timeline<std::uint64_t>> positions_;
  Timeline<std::string> servers_{{0.0, "server-1"}};
  Timeline<std::string> records_servers_;  ///< Which checks for promises reach, and no others do.
  Timeline<double> down_;
  Timeline<double> etas_;
  Timeline<WriteId> primary_;
  double broken_from_s_ = kNever;
  double frozen_from_s_ = kNever;
  double primary_down_from_s_ = kNever;
  int looks_ = 0;
  int fences_ = 0;
  int open_endpoints_ = 0;
  std::shared_ptr<Fencer> fencer_;
};

}  // namespace antipode::agent
