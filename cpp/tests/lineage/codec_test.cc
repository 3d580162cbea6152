// Level 1 and the golden values: texts to lineages and back.
#include "antipode/lineage.h"
#include "antipode/scope.h"
#include "settings_guard.h"
#include "vectors.h"

namespace antipode {
namespace {

using vectors::Case;

class Valid : public testing::TestWithParam<Case> {};

TEST_P(Valid, IsReadAndWrittenCanonically) {
  const auto& vector = GetParam().vector;
  const Lineage lineage = json::LineageOf(vector.at("lineage"));
  const std::string text = vector.at("text");
  const std::string canonical = vector.value("canonical", text);
  EXPECT_EQ(Lineage::Deserialize(text), lineage);
  EXPECT_EQ(lineage.Serialize(), canonical);
  EXPECT_EQ(Lineage::Deserialize(canonical), lineage);
}

TEST_P(Valid, HasASnapshotThatIsCanonical) {
  Settings settings;
  settings.max_lineage_bytes = 4'096;
  const SettingsGuard guard(settings);
  const Lineage lineage = json::LineageOf(GetParam().vector.at("lineage"));
  EXPECT_EQ(Scope(lineage).snapshot(), Serialize(lineage.Marked({"", "snapshot"})));
}

INSTANTIATE_TEST_SUITE_P(L1, Valid, testing::ValuesIn(vectors::Cases("L1-codec", "valid")), vectors::NameOf);
INSTANTIATE_TEST_SUITE_P(Golden, Valid, testing::ValuesIn(vectors::Cases("golden/v1", "values")), vectors::NameOf);

class Limits : public testing::TestWithParam<Case> {};

TEST_P(Limits, AreReadAndStillReadWhenWrittenAgain) {
  const auto& vector = GetParam().vector;
  const Lineage lineage = Lineage::Deserialize(vectors::TextOf(vector));
  EXPECT_EQ(lineage.writes().size(), vector.at("writes"));
  EXPECT_EQ(lineage.unknown().size(), vector.at("unknown"));
  EXPECT_EQ(Lineage::Deserialize(lineage.Serialize()), lineage);
}

INSTANTIATE_TEST_SUITE_P(L1, Limits, testing::ValuesIn(vectors::Cases("L1-codec", "limits")), vectors::NameOf);

class Refused : public testing::TestWithParam<Case> {};

TEST_P(Refused, HasItsCodeAtAPlaceWithinTheText) {
  const std::string text = vectors::TextOf(GetParam().vector);
  DecodeFault fault;
  EXPECT_FALSE(Lineage::TryDeserialize(text, &fault).has_value());
  EXPECT_EQ(fault.code, GetParam().vector.at("code").get<std::string>());
  EXPECT_LE(fault.offset, text.size());
  EXPECT_THROW(Lineage::Deserialize(text), LineageDecodeError);
}

INSTANTIATE_TEST_SUITE_P(L1, Refused, testing::ValuesIn(vectors::Cases("L1-codec", "errors")), vectors::NameOf);

TEST(Values, ThatCannotBeSentAreRefused) {
  EXPECT_THROW(Lineage({{"", "log", std::uint64_t{1}}}), std::invalid_argument);
  EXPECT_THROW(Lineage({{"posts", "\xED\xA0\x80", std::uint64_t{1}}}), std::invalid_argument);
  EXPECT_THROW(Lineage({{"posts", "log", std::uint64_t{1}, kMaxHour + 1}}), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(Lineage().Marked({"\xFF", "size"})), std::invalid_argument);
}

}  // namespace
}  // namespace antipode
