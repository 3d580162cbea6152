// Automatic barriers: each read waits for what its request depends on, where it reads.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "barrier/demand.h"
#include "barrier/floor.h"

namespace antipode {

/// What the next read by a client of `store` must see, as `Floor::Current` has it.
std::shared_ptr<BarrierFloor> CurrentFloor(Store& store, bool reads, const void* who = nullptr);

/// What an automatic barrier demands of one read, on top of the floor of one that was called. Its time is the
/// request's. When that is used up, or no check can help, the read is answered all the same, and counted, unless stale
/// reads are to throw.
class AutomaticFloor final : public BarrierFloor {
 public:
  AutomaticFloor(std::shared_ptr<Demand> demand, std::shared_ptr<Allowance> allowance, const Store& store,
                 std::shared_ptr<BarrierFloor> below);

  [[nodiscard]] bool Served() const override { return served_; }
  bool Accepts(const Observation& observation) override;
  void Hold(const Look& look, Store* watched) override;
  void Expire(const Unreachable& cause) override;
  void FailSnapshot(const StaleSnapshot& error, const std::function<bool(const Floor&)>& shows) override;
  /// The floor of a barrier that was called goes first.
  std::vector<std::shared_ptr<BarrierFloor>> Stages() override;

 private:
  [[nodiscard]] double LeftS() const override;
  [[nodiscard]] double LeastLookS() const override;
  void Prove(const std::string& server, double now_s) override { demand_->Prove(server, now_s); }
  void Fail(const UnmetError& error) override;
  void FailLate(Wait& wait, const Unreachable& cause) override;

  std::shared_ptr<Demand> demand_;
  std::shared_ptr<BarrierFloor> below_;
  std::atomic<bool> served_{false};
};

}  // namespace antipode
