// What runs in the background, on the machine's clock or, in scripts of level 4, on a virtual one.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "antipode/clock.h"

namespace antipode {

/// Something that alternates between work and pauses until it has nothing left to do.
class Stepper {
 public:
  virtual ~Stepper() = default;
  /// Works once; seconds until the next step, none when done.
  virtual std::optional<double> Step() = 0;
  /// Waits so many seconds, or until there is a reason to work.
  virtual void Pause(double timeout_s) = 0;
  /// Whether a pause should end now.
  [[nodiscard]] virtual bool Woken() const = 0;
};

/// Has the process go by another clock, or by the machine's again for null. For tests.
void ReplaceSystemClock(Clock* other);

}  // namespace antipode
