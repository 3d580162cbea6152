// The library's own threads: few, however many wait.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace antipode {

class Stepper;

/// Does short steps of the library later, none of which blocks.
class Later {
 public:
  /// When something is done, and its number among all.
  using Moment = std::pair<double, std::uint64_t>;

  virtual ~Later() = default;
  /// Does something at a moment of its clock, in seconds; soon where that has passed.
  virtual Moment At(double when_s, std::function<void()> step) = 0;
  /// Does it no more. Idempotent.
  virtual void Forget(const Moment& moment) = 0;
};

/// The threads of this process: one that keeps the time of whoever waits in the background, at most `max_threads` that
/// check servers, and a few that call back. Each ends after some seconds of idleness. Thread-safe.
namespace background {

/// What keeps time. Throws std::system_error where there is no thread for it.
Later& Timekeeper();
/// Runs a stepper until it is done. Throws std::system_error where there is no thread for it, or `max_threads` are at
/// work.
void Spawn(const std::shared_ptr<Stepper>& stepper);
/// Runs code of the application, which may take long, once one of a few threads is free. Throws std::system_error.
void Call(std::function<void()> task);

}  // namespace background
}  // namespace antipode
