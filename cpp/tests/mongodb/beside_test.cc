// What lies beside values, as other languages read it.
#include "mongodb/beside.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace antipode::mongodb
