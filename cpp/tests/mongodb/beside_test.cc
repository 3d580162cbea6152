// What lies beside values, as other languages read it.
#include "mongodb/beside.h"

#include <gtest/gtest.h>

#include "mongodb/blake2b.h"

namespace antipode::mongodb {
namespace {

std::string Hex(const std::string& bytes) {
  std::string text;
  for (const char each : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(each)));
    text += digits;
  }
  return text;
}

TEST(Blake2b, IsThatOfOtherLibraries) {
  EXPECT_EQ(Hex(Blake2b("", 9)), "d6bd6fc9a3324e5f32");
  EXPECT_EQ(Hex(Blake2b("abc", 9)), "70687daa6157af27dc");
  EXPECT_EQ(Hex(Blake2b(std::string(128, 'a'), 9)), "60403402ad84db3007");
  EXPECT_EQ(Hex(Blake2b(std::string(129, 'a'), 9)), "09fe8f4912809d60a5");
  EXPECT_EQ(Hex(Blake2b(std::string(300, 'a'), 9)), "0ad8b0a3ed979fea30");
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
