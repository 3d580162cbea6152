// When a watcher checks next, by how long earlier waits lasted: pure, in integers, without a clock.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <vector>

namespace antipode {

/// What the waits at one endpoint lasted, and when to check next therefore: at once, then at the longest pauses until
/// shortly before the first wait is expected to end, then close by. It decides when to ask, never what is true: what
/// ends sooner than expected, or later, is seen after 50 ms at most. Durations and times are in microseconds, times of
/// any clock.
class Expectation {
 public:
  /// Takes in that a wait ended, between the last check that was in vain and the one that was not. It ended in the
  /// middle, as far as is known. After a longer pause it may have ended much earlier: the next wait is checked earlier,
  /// too. A wait that ended before all that was expected says that the lag has changed: nothing is known any more.
  void Learn(std::int64_t after_us, std::int64_t until_us);
  /// When to check next, where all that wait were checked in vain now. `joined`: when each of them began to wait; not
  /// empty.
  [[nodiscard]] std::int64_t NextUs(std::int64_t now_us, const std::multiset<std::int64_t>& joined) const;

 private:
  /// When the next wait is expected to end, or a part of the way there.
  [[nodiscard]] std::int64_t ExpectedUs(std::int64_t now_us, const std::multiset<std::int64_t>& joined) const;

  std::deque<std::int64_t> waits_;
  std::int64_t least_us_ = 0;
  std::vector<std::int64_t> expected_;
};

}  // namespace antipode
