#pragma once

#include <cstdint>
#include <memory>

#include "antipode/export.h"

namespace antipode {

class Stepper;

/// Time as the library sees it. For shims: deadlines, written hours, how long records live.
class ANTIPODE_EXPORT Clock {
 public:
  virtual ~Clock();
  /// Seconds that never go back.
  [[nodiscard]] virtual double Now() const = 0;
  /// The Unix second it is now: what promises expire by.
  [[nodiscard]] virtual double UnixSeconds() const = 0;
  /// For the library: runs a stepper in the background until it is done. Throws std::system_error where there is no
  /// thread for it.
  virtual void Spawn(const std::shared_ptr<Stepper>& stepper) = 0;
  /// The Unix hour it is now.
  [[nodiscard]] std::uint64_t Hour() const { return static_cast<std::uint64_t>(UnixSeconds() / 3'600); }
};

/// The machine's clocks.
ANTIPODE_EXPORT Clock& SystemClock();

}  // namespace antipode
