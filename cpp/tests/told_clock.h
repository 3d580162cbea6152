// A clock that says what it is told, on which nothing runs: a test steps what is spawned itself.
#pragma once

#include "antipode/clock.h"

namespace antipode {

class ToldClock final : public Clock {
 public:
  explicit ToldClock(double seconds = 0) : now_s(seconds) {}
  [[nodiscard]] double Now() const override { return now_s; }
  [[nodiscard]] double UnixSeconds() const override { return now_s; }
  void Spawn(const std::shared_ptr<Stepper>&) override {}

  double now_s;
};

}  // namespace antipode
