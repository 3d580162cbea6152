#include "barrier/expectation.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace antipode {
namespace {

/// The longest and the shortest pause.
constexpr std::int64_t kMostUs = 50'000;
constexpr std::int64_t kLeastUs = 1'000;
/// Waits that are remembered.
constexpr std::size_t kMostWaits = 16;
/// The widest gap between two checks near the expected end.
constexpr std::int64_t kMostCloseUs = 2'000;

/// The gap between two checks near the expected end of a wait.
std::int64_t CloseUs(std::int64_t waited_us) { return std::clamp(waited_us / 100, kLeastUs, kMostCloseUs); }

/// The widest gap where nothing is learned, or near the expected end.
std::int64_t WideUs(std::int64_t waited_us) { return std::max(2 * CloseUs(waited_us), waited_us / 10 + 2); }

/// The latest that is no later than a time.
std::optional<std::int64_t> LatestUntil(const std::multiset<std::int64_t>& times, std::int64_t until_us) {
  const auto after = times.upper_bound(until_us);
  if (after == times.begin()) return std::nullopt;
  return *std::prev(after);
}

}  // namespace

void Expectation::Learn(std::int64_t after_us, std::int64_t until_us) {
  const std::int64_t width_us = until_us - after_us;
  const std::int64_t close_us = CloseUs(until_us);
  if (!waits_.empty() && until_us < least_us_ && width_us > WideUs(until_us)) {
    waits_.clear();
    expected_.clear();
    return;
  }
  if (waits_.size() == kMostWaits) waits_.pop_front();
  waits_.push_back(until_us - (width_us <= 4 * close_us ? width_us / 2 : std::max(close_us, width_us / 4)));
  expected_.assign(waits_.begin(), waits_.end());
  std::sort(expected_.begin(), expected_.end());
  least_us_ = expected_.front();
  const auto paid = std::min<std::int64_t>(expected_[expected_.size() / 2] / kMostUs, 6);  // Checks of longest pauses.
  const auto left_out = static_cast<std::ptrdiff_t>(expected_.size()) * paid / 12;
  expected_.erase(expected_.begin(), expected_.begin() + left_out);
}

std::int64_t Expectation::NextUs(std::int64_t now_us, const std::multiset<std::int64_t>& joined) const {
  if (expected_.empty()) return now_us + std::clamp((now_us - *joined.rbegin()) / 10, kLeastUs, kMostUs);
  const std::int64_t longest_us = expected_.back();
  std::int64_t next_us = std::min(ExpectedUs(now_us, joined), now_us + kMostUs);
  // The youngest that has waited longer than all before it.
  if (const auto overdue = LatestUntil(joined, now_us - longest_us)) {
    const std::int64_t waited_us = now_us - *overdue;
    next_us = std::min(next_us, now_us + std::max(CloseUs(waited_us), (waited_us - longest_us) / 2));
  }
  return std::max(next_us, now_us + kLeastUs);
}

std::int64_t Expectation::ExpectedUs(std::int64_t now_us, const std::multiset<std::int64_t>& joined) const {
  std::int64_t first_us = 0;
  std::int64_t wait_us = 0;
  for (const std::int64_t each : expected_) {
    const auto later = joined.upper_bound(now_us - each);
    if (later == joined.end() || (wait_us != 0 && *later + each >= first_us)) continue;
    first_us = *later + each;
    wait_us = each;
  }
  if (wait_us == 0) return now_us + kMostUs;
  std::int64_t last_us = first_us;
  const std::int64_t until_us = first_us + CloseUs(wait_us);
  for (const std::int64_t each : expected_) {  // One check for all that are expected close to the first.
    if (const auto sooner = LatestUntil(joined, until_us - each)) last_us = std::max(last_us, *sooner + each);
  }
  const std::int64_t left_us = last_us - now_us;
  return now_us + left_us / ((left_us + kMostUs - 1) / kMostUs);
}

}  // namespace antipode
