// Time as the library sees it; scripts of level 4 have a virtual one.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

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

class Clock {
 public:
  virtual ~Clock() = default;
  /// Seconds that never go back.
  [[nodiscard]] virtual double Now() const = 0;
  /// The Unix second it is now: what promises expire by.
  [[nodiscard]] virtual double UnixSeconds() const = 0;
  /// Runs a stepper in the background until it is done. Throws std::system_error where there is no thread for it.
  virtual void Spawn(const std::shared_ptr<Stepper>& stepper) = 0;
  /// The Unix hour it is now.
  [[nodiscard]] std::uint64_t Hour() const { return static_cast<std::uint64_t>(UnixSeconds() / 3'600); }
};

/// The machine's clocks.
Clock& SystemClock();

}  // namespace antipode
