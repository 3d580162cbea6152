#include "runtime/clock.h"

#include <atomic>

#include "runtime/background.h"

namespace antipode {
namespace {

class Machine final : public Clock {
 public:
  [[nodiscard]] double Now() const override { return Seconds(std::chrono::steady_clock::now()); }
  [[nodiscard]] double UnixSeconds() const override { return Seconds(std::chrono::system_clock::now()); }
  void Spawn(const std::shared_ptr<Stepper>& stepper) override { background::Spawn(stepper); }

 private:
  template <typename Point>
  static double Seconds(const Point& point) {
    return std::chrono::duration<double>(point.time_since_epoch()).count();
  }
};

std::atomic<Clock*>& Replaced() {
  static std::atomic<Clock*> replaced{nullptr};
  return replaced;
}

}  // namespace

Clock::~Clock() = default;

Clock& SystemClock() {
  if (Clock* other = Replaced().load()) return *other;
  static auto* machine = new Machine;  // Never destroyed: threads may ask while the process ends.
  return *machine;
}

void ReplaceSystemClock(Clock* other) { Replaced().store(other); }

}  // namespace antipode
