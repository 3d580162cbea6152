// Time as the library sees it; scripts of level 4 have a virtual one.
#pragma once

#include <chrono>
#include <cstdint>

namespace antipode {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Seconds that never go back.
  [[nodiscard]] virtual double Now() const = 0;
  /// The Unix second it is now: what promises expire by.
  [[nodiscard]] virtual double UnixSeconds() const = 0;
  /// The Unix hour it is now.
  [[nodiscard]] std::uint64_t Hour() const { return static_cast<std::uint64_t>(UnixSeconds() / 3'600); }
};

/// The machine's clocks.
const Clock& SystemClock();

}  // namespace antipode
