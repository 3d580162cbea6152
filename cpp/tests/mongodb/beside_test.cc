// What is stored with values, as other languages read it.
#include "mongodb/beside.h"

#include <gtest/gtest.h>

#include "virtual_clock.h"

namespace antipode::mongodb {
namespace {

TEST(Beside, TheDigestIsThatOfOtherLanguages) {
  EXPECT_EQ(TextAt(Whole(Only("v", "hello"), Lineage()).bson(), "w"), "pTmcjj9fzql8|1");
}

TEST(Beside, ALineageIsOfItsOwnValueAlone) {
  const Lineage lineage({{"else", "a", std::uint64_t{5}, 400'000}});
  const Doc mine = Only("v", "mine");
  const Doc document = Only("_ap", Whole(mine, lineage));
  EXPECT_EQ(FoundBeside(mine, At(document.bson(), "_ap"), "posts"), std::pair(lineage, Match::kOwn));
  const Doc other = Only("v", "other");
  EXPECT_EQ(FoundBeside(other, At(document.bson(), "_ap"), "posts"), std::pair(Lineage(), Match::kForeign));
}

TEST(Beside, TombstonesOfFewLogsAreNumbersAndOthersTexts) {
  Numbers numbers;
  EXPECT_TRUE(numbers.Of(Lineage({{"else", "a", std::uint64_t{5}, 400'000}})));
  EXPECT_FALSE(numbers.Of(Lineage()));
  EXPECT_FALSE(numbers.Of(Lineage({{"else", "a", std::string("opaque"), 400'000}})));
  EXPECT_FALSE(numbers.Of(Lineage().Marked({"else", "in_doubt"})));
  int kept = 1;
  for (int n = 0; n < 100; ++n) {
    if (numbers.Of(Lineage({{"else", "log" + std::to_string(n), std::uint64_t{5}, 400'000}}))) ++kept;
  }
  EXPECT_EQ(kept, 64);
}

TEST(Beside, ADayLaterOtherLogsMayBeNumbers) {
  agent::VirtualClock clock;
  Numbers numbers(clock);
  const auto is_kept = [&](int n) {
    return numbers.Of(Lineage({{"else", "log" + std::to_string(n), std::uint64_t{5}, 400'000}})).has_value();
  };
  for (int n = 0; n < 64; ++n) EXPECT_TRUE(is_kept(n));
  EXPECT_FALSE(is_kept(64));
  clock.At(86'401, [] {});
  clock.Run();
  EXPECT_TRUE(is_kept(64));
}

TEST(Beside, AMissingValueAndNullAreOne) {
  const Lineage lineage({{"else", "a", std::uint64_t{5}, 400'000}});
  Doc document = Only("_ap", Whole(HolderOf(std::nullopt), lineage));
  bson_append_null(document.get(), "value", -1);
  for (const auto& value : {std::optional<Value>(), At(document.bson(), "value")}) {
    EXPECT_EQ(FoundBeside(HolderOf(value), At(document.bson(), "_ap"), "posts"), std::pair(lineage, Match::kOwn));
  }
}

}  // namespace
}  // namespace antipode::mongodb
