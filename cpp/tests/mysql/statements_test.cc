// What reading the text of a statement costs; the vectors hold what it means.
#include "mysql/statements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <string>
#include <string_view>

#include "mysql/functions.h"

namespace antipode::mysql {
namespace {

/// The least processor time of some runs, in seconds.
double Spent(std::string_view sql) {
  double least = std::numeric_limits<double>::max();
  for (int run = 0; run < 5; ++run) {
    const std::clock_t started = std::clock();
    EXPECT_NE(EffectsOf(sql) + CallsOf(sql).size(), 0U);
    least = std::min(least, static_cast<double>(std::clock() - started) / CLOCKS_PER_SEC);
  }
  return least;
}

/// A text that is four times as long takes less than eight times the time: not sixteen.
TEST(LongTexts, TakeLinearTime) {
  for (const std::string_view unit : {"/*", "/*!", "/* */ ", "-- \n", "'", "\"", "`", "#", "'a\\b',", "('b', 2), ",
                                      "f(1, ", "(;", "a.", "AS (", "next ", "orders "}) {
    std::string sql = "SELECT f() ";
    while (sql.size() < kLongestText) sql += unit;
    const double most = 8 * Spent(std::string_view(sql).substr(0, 16'000)) + 0.002;
    EXPECT_LT(Spent(std::string_view(sql).substr(0, 64'000)), most) << unit;
  }
}

/// What lies beyond the bound is never taken for nothing.
TEST(LongTexts, DoAnythingBeyondTheBound) {
  for (const std::string_view begin : {"SELECT '", "INSERT INTO t VALUES (1, '", "BEGIN; SELECT '"}) {
    const std::string sql = std::string(begin) + std::string(kLongestText, 'x') + "'; COMMIT";
    constexpr Effects kAll = kReads | kWrites | kCommits | kSeveral;
    EXPECT_EQ(EffectsOf(sql) & (kAll | kLocks), kAll) << begin;
  }
}

}  // namespace
}  // namespace antipode::mysql
