// Level 2: what append, remove, merge, only and bounded encoding keep.
#include "antipode/lineage.h"
#include "vectors.h"

namespace antipode {
namespace {

using vectors::Case;
using vectors::Json;

class Script : public testing::TestWithParam<Case> {};

TEST_P(Script, Holds) {
  const Json& steps = GetParam().vector.at("steps");
  const Json found = json::Algebra(steps);
  ASSERT_EQ(found.size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Json& step = steps[i];
    if (step.at("op") == "equal") {
      EXPECT_EQ(found[i], step.at("equal"));
    } else if (step.at("op") == "count") {
      for (const auto& [name, count] : found[i].items()) EXPECT_EQ(count, step.value(name, count)) << name;
    } else if (step.contains("code")) {
      EXPECT_EQ(found[i], Json({{"code", step.at("code")}}));
    } else if (!step.contains("as")) {
      EXPECT_EQ(found[i], step.at("text"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(L2, Script, testing::ValuesIn(vectors::Cases("L2-algebra", "scripts")), vectors::NameOf);

TEST(Operations, LeaveTheirOperandsAsTheyWere) {
  const Lineage before{{"posts", "log", std::uint64_t{1}}};
  const Lineage after = before.Append({"posts", "log", std::uint64_t{2}});
  EXPECT_EQ(before.writes(), (std::vector<WriteId>{{"posts", "log", std::uint64_t{1}}}));
  EXPECT_EQ(after.writes(), (std::vector<WriteId>{{"posts", "log", std::uint64_t{2}}}));
  EXPECT_TRUE(after.Remove({"posts", "log", std::uint64_t{2}}).empty());
}

}  // namespace
}  // namespace antipode
