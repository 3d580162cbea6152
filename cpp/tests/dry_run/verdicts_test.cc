// Each read is judged by what its request depends on and what guards it, and what travels for that is stored nowhere.
#include "verdicts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "antipode/barrier.h"
#include "antipode/floor.h"
#include "antipode/propagation.h"
#include "antipode/scope.h"
#include "antipode/stored.h"
#include "dry_run/recorded.h"
#include "scripts.h"
#include "vectors.h"
#include "virtual_clock.h"

namespace antipode {
namespace {

using json::Json;

class Verdicts : public testing::TestWithParam<vectors::Case> {};

std::vector<Json> Sorted(const Json& list) {
  std::vector<Json> all = list;
  std::sort(all.begin(), all.end());
  return all;
}

TEST_P(Verdicts, AreAsTheVectorsHaveThem) {
  const Json& vector = GetParam().vector;
  const Json found = agent::JudgeReads(vector);
  Json expected = Json::array();
  for (const Json& step : vector.at("steps")) {
    if (step.at("op") != "read" || step.at("verdict").is_null()) continue;
    expected.push_back({{"verdict", step.at("verdict")}, {"writes", Sorted(step.at("writes"))}});
  }
  EXPECT_EQ(found.at("reads"), expected);
  if (vector.contains("guards_after")) {
    EXPECT_EQ(Sorted(found.at("guards")), Sorted(vector.at("guards_after")));
  }
  for (const char* unseen : {"counted", "lints"}) {
    EXPECT_EQ(Sorted(found.at(unseen)), Sorted(vector.value(unseen, Json::array()))) << unseen;
  }
}

INSTANTIATE_TEST_SUITE_P(Vectors, Verdicts, testing::ValuesIn(vectors::Cases("L3-headers", "verdicts")),
                         vectors::NameOf);

/// A registered replica of posts.
class DryRun : public testing::Test {
 protected:
  DryRun() : posts_(agent::StoreOf({{"datastore", "posts"}, {"reads_from", "replica"}, {"floors", true}}, clock_)) {}
  ~DryRun() override { posts_->Close(); }
  static void Write(std::uint64_t version = 5) { RecordWrite({"posts", "log", version}); }
  void Read() { Floor::Current(*posts_); }
  static BarrierOptions Options() {
    BarrierOptions options;
    options.timeout = Seconds(1);
    return options;
  }
  static std::vector<std::string> VerdictsIn(const Recorded& recorded) {
    std::vector<std::string> verdicts;
    for (const Json& read : recorded.Of("read")) verdicts.push_back(read.at("verdict"));
    return verdicts;
  }

  agent::VirtualClock clock_;
  std::shared_ptr<agent::FakeStore> posts_;
};

using Said = std::vector<std::string>;

bool Holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(DryRun, SendsTheRequestAndItsGuardsAlongAndStoresNeither) {
  const Recorded recorded;
  const ScopeGuard request;
  Write();
  Barrier(Options());
  for (const std::string& text : {CurrentScope()->text(), CurrentScope()->snapshot(), *AnswerOf(*CurrentScope())}) {
    EXPECT_TRUE(Holds(text, "~0r")) << text;
    EXPECT_TRUE(Holds(text, "~0g-.kposts.5.log")) << text;
  }
  EXPECT_FALSE(Holds(StoredText(Current()), "~0")) << StoredText(Current());
}

TEST_F(DryRun, GoesOnInTheNextProcessByWhatTravelled) {
  const Recorded recorded;
  std::string sent;
  {
    const ScopeGuard request;
    Write();
    Barrier(Options());
    sent = CurrentScope()->text();
  }
  const ScopeGuard next(Extract({{"baggage", "antipode=" + sent}}));
  EXPECT_TRUE(Current().unknown().empty()) << "notes are kept apart from the lineage";
  Read();
  EXPECT_EQ(VerdictsIn(recorded), Said{"guarded"});
  const auto scopes = recorded.Of("scope");
  ASSERT_EQ(scopes.size(), 2U);
  EXPECT_EQ(scopes[0]["opened"], "here");
  EXPECT_EQ(scopes[1]["opened"], "incoming");
  EXPECT_EQ(scopes[0]["request"], scopes[1]["request"]) << "it is one request";
}

TEST_F(DryRun, LearnsGuardsFromAnswers) {
  const Recorded recorded;
  const ScopeGuard request;
  Write();
  EXPECT_EQ(ExtractResponse({{"antipode-lineage", "1~0g-.kposts.7.log"}}, "posts", CurrentScope().get()), Lineage());
  Read();
  EXPECT_EQ(VerdictsIn(recorded), Said{"guarded"});
}

TEST_F(DryRun, SharesItsNotesAmongTheBranchesOfARequest) {
  const Recorded recorded;
  const ScopeGuard request;
  Write();
  {
    const Fulfilling branch(Promise{"posts", std::string(32, 'a'), 4'000'000'000});
    Barrier(Options());
  }
  Read();
  EXPECT_EQ(VerdictsIn(recorded), Said{"guarded"});
}

TEST_F(DryRun, HasNoReadThatIsMoreOfAnotherOrNoneAtAll) {
  const Recorded recorded;
  const ScopeGuard request;
  Write();
  Floor::Current(*posts_, false);
  EXPECT_TRUE(recorded.Of("read").empty());
}

TEST_F(DryRun, WaitsForNothingAndRaisesNothing) {
  const Recorded recorded;
  const ScopeGuard request;
  Write();
  const auto result = Barrier(Options());
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(posts_->looks(), 0);
}

TEST_F(DryRun, GuardsByABarrierThatWaitsInIt) {
  const Recorded recorded;
  posts_->Advance("log", 5, 0);
  const ScopeGuard request;
  Write();
  BarrierOptions options = Options();
  options.mode = Mode::kDryRun;
  Barrier(options);
  const auto barriers = recorded.Of("barrier");
  ASSERT_EQ(barriers.size(), 1U);
  EXPECT_EQ(barriers[0]["guards"], Json::parse(R"([{"datastore":"posts","log":"log","version":"5"}])"));
  EXPECT_EQ(barriers[0]["at"], "now");
  EXPECT_EQ(barriers[0]["only"], nullptr);
  EXPECT_EQ(barriers[0]["dry"], true);
}

TEST_F(DryRun, GuardsNothingWhereABarrierWouldFailWithoutIt) {
  const Recorded recorded;
  const auto other = agent::StoreOf({{"datastore", "posts"}, {"reads_from", "replica"}}, clock_);
  const ScopeGuard request;
  Write();
  Barrier(Options());
  Read();
  other->Close();
  EXPECT_EQ(VerdictsIn(recorded), Said{"unguarded"});
}

TEST_F(DryRun, OfASettingAloneIsNoneWhereItsProcessIsNot) {
  const SettingsGuard settings;
  const ScopeGuard request;
  Write();
  BarrierOptions options = Options();
  options.mode = Mode::kDryRun;
  Barrier(options);
  EXPECT_FALSE(Holds(CurrentScope()->text(), "0r"));
  EXPECT_FALSE(Holds(CurrentScope()->text(), "0g"));
}

TEST_F(DryRun, KeepsGuardsToTheDatastoresThatMayBeNamed) {
  Settings settings;
  settings.egress = std::set<std::string>{"users"};
  const Recorded recorded(settings);
  const ScopeGuard request;
  Write();
  Barrier(Options());
  EXPECT_TRUE(Holds(CurrentScope()->text(), "~0r"));
  EXPECT_FALSE(Holds(CurrentScope()->text(), "0g"));
  Read();
  EXPECT_EQ(VerdictsIn(recorded), Said{"guarded"}) << "here it is known";
}

TEST_F(DryRun, DropsNotesBeforeDependencies) {
  Settings settings;
  settings.max_lineage_bytes = 64;
  const Recorded recorded(settings);
  const ScopeGuard request;
  for (const char* log : {"a-log", "b-log", "c-log"}) RecordWrite({"posts", log, std::uint64_t{5}, 1});
  Barrier(Options());
  const Lineage sent = Lineage::Deserialize(CurrentScope()->text());
  EXPECT_EQ(sent.writes().size(), 3U);
  EXPECT_TRUE(sent.incomplete().empty());
}

}  // namespace
}  // namespace antipode
