#include "runtime/clock.h"

namespace antipode {
namespace {

class Machine final : public Clock {
 public:
  [[nodiscard]] double Now() const override { return Seconds(std::chrono::steady_clock::now()); }
  [[nodiscard]] double UnixSeconds() const override { return Seconds(std::chrono::system_clock::now()); }

 private:
  template <typename Point>
  static double Seconds(const Point& point) {
    return std::chrono::duration<double>(point.time_since_epoch()).count();
  }
};

}  // namespace

const Clock& SystemClock() {
  static const Machine machine;
  return machine;
}

}  // namespace antipode
