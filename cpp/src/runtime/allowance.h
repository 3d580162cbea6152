// Time that may be waited in all.
#pragma once

#include <algorithm>
#include <mutex>

namespace antipode {

/// Seconds that may be waited in all. Whoever waits at the same time spends them together. Thread-safe.
class Allowance {
 public:
  explicit Allowance(double seconds) : left_s_(seconds) {}

  [[nodiscard]] double LeftS(double now_s) const {
    const std::lock_guard guard(lock_);
    return std::max(left_s_ - (waiting_ == 0 ? 0 : now_s - since_s_), 0.0);
  }
  void Begin(double now_s) {
    const std::lock_guard guard(lock_);
    if (waiting_++ == 0) since_s_ = now_s;
  }
  void End(double now_s) {
    const std::lock_guard guard(lock_);
    left_s_ = std::max(left_s_ - (now_s - since_s_), 0.0);
    since_s_ = now_s;
    --waiting_;
  }
  /// Somebody waited for all of it, elsewhere.
  void UseUp() {
    const std::lock_guard guard(lock_);
    left_s_ = 0;
  }

 private:
  mutable std::mutex lock_;
  double left_s_;
  int waiting_ = 0;
  double since_s_ = 0;
};

}  // namespace antipode
