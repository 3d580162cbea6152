// One locked scope a request: guards, hand-over between threads, branches that fulfil, what is counted.
#include "antipode/scope.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

#include "antipode/clock.h"
#include "antipode/observer.h"
#include "antipode/propagation.h"
#include "antipode/stored.h"
#include "settings_guard.h"

namespace antipode {
namespace {

std::uint64_t Counted(const std::string& metric, const std::string& subject = "") {
  const auto metrics = Metrics();
  const auto found = metrics.find({metric, subject});
  return found == metrics.end() ? 0 : found->second;
}

TEST(StoredText, LeavesOutTheNotesOfADryRunWhichTravelOn) {
  const std::string notes = "0g-.kposts.5.log~0r0123456789abcdef";
  const auto scope = Extract({{"baggage", "antipode=1~kposts.5.log~" + notes}});
  EXPECT_NE(scope->text().find("0r0123456789abcdef"), std::string::npos) << "services without a dry run pass them on";
  EXPECT_EQ(StoredText(scope->lineage()), "1~kposts.5.log");
  EXPECT_EQ(StoredLineage("posts", "1~kposts.5.log~" + notes), Lineage::Deserialize("1~kposts.5.log"));
  EXPECT_EQ(StoredText(Lineage::Deserialize("1~xnew")), "1~xnew") << "items of other kinds stay";
}

TEST(Snapshot, IsWithinTheBoundWhereTheLineageFillsIt) {
  Settings settings;
  settings.max_lineage_bytes = 64;
  const SettingsGuard guard(settings);
  const Scope scope(
      Lineage{{"posts", std::string(20, 'a'), std::uint64_t{7}}, {"news", std::string(10, 'b'), std::uint64_t{7}}});
  ASSERT_GT(scope.text().size() + 12, 64U - 9U) << "there is no room for the mark";
  const Lineage snapshot = Lineage::Deserialize(scope.snapshot());
  EXPECT_LE(scope.snapshot().size(), 64U - 9U);
  EXPECT_EQ(snapshot.incomplete().count({"", "snapshot"}), 1U);
  EXPECT_EQ(snapshot.incomplete().size(), 2U) << "and one says what was dropped";
}

TEST(ScopeText, CountsOnceWhatDoesNotFitHoweverOftenItLeaves) {
  Settings settings;
  settings.max_lineage_bytes = 64;
  const SettingsGuard guard(settings);
  Scope scope;
  for (std::uint64_t key = 0; key < 20; ++key) scope.Append({"posts", "key" + std::to_string(key), key});
  const std::uint64_t before = Counted("dropped_for_size", "posts");
  const std::string text = scope.text();
  EXPECT_LE(text.size(), 64U - 9U);
  EXPECT_EQ(scope.text(), text);
  EXPECT_EQ(Counted("dropped_for_size", "posts"), before + 1);
  scope.Append({"posts", "another", std::uint64_t{20}});
  EXPECT_LE(scope.text().size(), 64U - 9U);
  EXPECT_EQ(Counted("dropped_for_size", "posts"), before + 2) << "of another lineage once more";
}

TEST(ScopeGuard, EndsItsScopeAndLeavesTheOneAround) {
  const ScopeGuard outer;
  std::shared_ptr<Scope> inside;
  {
    const ScopeGuard inner;
    inside = inner.scope();
    EXPECT_EQ(CurrentScope(), inside);
    EXPECT_TRUE(inside->open());
  }
  EXPECT_FALSE(inside->open());
  EXPECT_EQ(CurrentScope(), outer.scope());
}

TEST(ScopeGuard, OutOfOrderLeavesTheScopeCurrentWhoseGuardLives) {
  const std::uint64_t before = Counted("scope_out_of_order");
  auto first = std::make_unique<ScopeGuard>();
  const ScopeGuard second;
  const auto scope = first->scope();
  first.reset();
  EXPECT_EQ(CurrentScope(), second.scope());
  EXPECT_EQ(scope->lineage().incomplete(), std::set<Incomplete>({{"", "out_of_order"}}));
  EXPECT_TRUE(Current().empty()) << "what is written now enters the right scope";
  EXPECT_EQ(Counted("scope_out_of_order"), before + 1);
}

TEST(ScopeGuard, DroppedOnAnotherThreadIsNotCurrentAnyMore) {
  const ScopeGuard around;
  auto guard = std::make_unique<ScopeGuard>();
  const auto scope = guard->scope();
  std::thread([&guard] { guard.reset(); }).join();
  EXPECT_EQ(CurrentScope(), around.scope());
  EXPECT_EQ(scope->lineage().incomplete(), std::set<Incomplete>({{"", "out_of_order"}}));
}

TEST(ScopeGuard, EndsInOrderAfterOneThatWasDroppedOnAnotherThread) {
  auto around = std::make_unique<ScopeGuard>();
  auto guard = std::make_unique<ScopeGuard>();
  std::thread([&guard] { guard.reset(); }).join();
  const auto scope = around->scope();
  around.reset();
  EXPECT_TRUE(scope->lineage().incomplete().empty());
}

TEST(Capture, HandsTheRequestToAnotherThread) {
  const ScopeGuard request;
  std::thread([captured = Capture()] {
    EXPECT_EQ(CurrentScope(), nullptr);
    const ScopeGuard guard(captured);
    RecordWrite({"posts", "log", std::uint64_t{7}});
  }).join();
  EXPECT_EQ(Current().writes().size(), 1U);
  EXPECT_GT(Current().writes()[0].written_hour, 0U);
  EXPECT_TRUE(request.scope()->open());
}

TEST(Scope, LosesNothingOfThreadsThatAddAtOnce) {
  constexpr std::uint64_t kThreads = 8;
  constexpr std::uint64_t kWrites = 20;
  const ScopeGuard request;
  std::vector<std::thread> threads;
  for (std::uint64_t n = 0; n < kThreads; ++n) {
    threads.emplace_back([n, captured = Capture()] {
      const ScopeGuard guard(captured);
      for (std::uint64_t k = 0; k < kWrites; ++k) {
        RecordWrite({"posts", "log" + std::to_string(n * kWrites + k), k});
        Current();
        Serialize();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Current().writes().size(), kThreads * kWrites);
}

TEST(Scope, SaysHowManyBranchesRun) {
  const ScopeGuard request;
  {
    const OpenBranch branch(request.scope());
    EXPECT_EQ(Serialize(), "1~o1");
  }
  EXPECT_EQ(Serialize(), "1");
}

TEST(Scope, HoldsNothingAndTakesNothingOnceStopped) {
  const ScopeGuard request;
  RecordWrite({"posts", "log", std::uint64_t{7}});
  Stop();
  RecordWrite({"posts", "log", std::uint64_t{8}});
  request.scope()->MarkIncomplete("posts", "in_doubt");
  request.scope()->Merge(Lineage({{"posts", "log", std::uint64_t{9}}}));
  EXPECT_TRUE(request.scope()->lineage().empty());
  EXPECT_TRUE(Current().empty());
}

TEST(Write, WithoutAScopeIsCountedOrRefused) {
  const std::uint64_t before = Counted("unscoped_write", "posts");
  RecordWrite({"posts", "log", std::uint64_t{7}});
  EXPECT_EQ(Counted("unscoped_write", "posts"), before + 1);
  Settings strict;
  strict.on_unscoped = Policy::kRaise;
  const SettingsGuard settings(strict);
  EXPECT_THROW(RecordWrite({"posts", "log", std::uint64_t{7}}), ConfigurationError);
}

TEST(Write, AfterTheAnswerIsCounted) {
  const SettingsGuard settings;
  const auto scope = Extract({{"antipode-sent", "1"}});
  EXPECT_EQ(AnswerOf(*scope), "1");
  const std::uint64_t before = Counted("after_response_write", "late");
  scope->Append({"late", "log", std::uint64_t{7}});
  EXPECT_EQ(Counted("after_response_write", "late"), before + 1);
}

const Promise kPromise{"posts", std::string(32, 'a'), 1'800'000'000};

TEST(Fulfilling, RunsWithEverythingButItsPromiseAndJoins) {
  const ScopeGuard request(Lineage(LineageParts{{{"users", "log", std::uint64_t{1}}}, {}, {kPromise}, 0, {}}));
  {
    const Fulfilling branch(TokenOf(kPromise));
    EXPECT_TRUE(Current().promises().empty());
    EXPECT_EQ(Current().writes().size(), 1U);
    Transfer(Lineage(LineageParts{{{"posts", "log", std::uint64_t{2}}}, {}, {kPromise}, 0, {}}));
    EXPECT_TRUE(Current().promises().empty());
  }
  EXPECT_EQ(Current().promises(), std::vector<Promise>{kPromise});
  EXPECT_EQ(Current().writes().size(), 2U);
}

// A text is decoded without a clock: what it says of the future is taken back where it enters.
TEST(Transfer, TakesBackWhatIsSaidOfTheFuture) {
  constexpr std::uint64_t kYear8867 = 36ULL * 36 * 36 * 36 * 36 - 1;  // In hours.
  constexpr std::uint64_t kLongest = std::uint64_t{1} << 40U;
  const Lineage far(LineageParts{{{"posts", "log", std::uint64_t{2}, kYear8867}},
                                 {},
                                 {{"posts", "00000000000000000000000000000000", kLongest}},
                                 0,
                                 {}});
  const ScopeGuard request;
  Transfer(Lineage::Deserialize(far.Serialize()));
  const Clock& clock = SystemClock();
  EXPECT_LE(Current().writes().at(0).written_hour, clock.Hour());
  EXPECT_LT(static_cast<double>(Current().promises().at(0).expires_s), clock.UnixSeconds() + 8 * 86'400);
}

TEST(Fulfilling, HandsOnWhatItsThreadsAddLate) {
  const ScopeGuard request;
  Captured captured;
  {
    const Fulfilling branch(kPromise);
    captured = Capture();
  }
  std::thread([captured] {
    const ScopeGuard guard(captured);
    RecordWrite({"posts", "log", std::uint64_t{2}});
  }).join();
  EXPECT_EQ(Current().writes().size(), 1U);
}

TEST(Token, IsOfOnePromiseAlone) {
  EXPECT_EQ(PromiseOf(TokenOf(kPromise)), kPromise);
  EXPECT_THROW(PromiseOf("1"), LineageDecodeError);
  EXPECT_THROW(PromiseOf("nonsense"), LineageDecodeError);
  EXPECT_THROW(PromiseOf(Lineage(LineageParts{{}, {{"a", "b"}}, {kPromise}, 0, {}}).Serialize()), LineageDecodeError);
}

class Listening final : public Observer {
 public:
  void Counted(std::string_view metric, std::string_view subject) noexcept override {
    counted.push_back(std::string(metric) + " " + std::string(subject));
  }
  void Warned(std::string_view message) noexcept override { warned.emplace_back(message); }
  std::vector<std::string> counted;
  std::vector<std::string> warned;
};

TEST(Observer, LearnsWhatIsCountedAndIsWarnedOnce) {
  const auto listening = std::make_shared<Listening>();
  SetObserver(listening);
  for (int times = 0; times < 2; ++times) RecordWrite({"observed", "log", std::uint64_t{7}});
  SetObserver(nullptr);
  EXPECT_EQ(listening->counted, (std::vector<std::string>{"unscoped_write observed", "unscoped_write observed"}));
  ASSERT_EQ(listening->warned.size(), 1U);
  EXPECT_NE(listening->warned[0].find("observed"), std::string::npos);
}

[[gnu::noinline]] void WriteHere() { RecordWrite({"placed", "log", std::uint64_t{7}}); }
[[gnu::noinline]] void WriteThere() { RecordWrite({"placed", "log", std::uint64_t{8}}); }

TEST(Observer, IsWarnedOnceForEachPlaceOutsideOfAScope) {
  const auto listening = std::make_shared<Listening>();
  SetObserver(listening);
  for (int times = 0; times < 3; ++times) {
    WriteHere();
    WriteThere();
  }
  SetObserver(nullptr);
  ASSERT_EQ(listening->warned.size(), 2U);
  EXPECT_NE(listening->warned[0].find("WriteHere"), std::string::npos) << listening->warned[0];
  EXPECT_NE(listening->warned[1].find("WriteThere"), std::string::npos) << listening->warned[1];
}

TEST(Observer, IsWarnedOnceOfAllThatALongLineageLost) {
  const SettingsGuard guard;
  Settings settings;
  settings.max_lineage_bytes = 256;
  Configure(settings);
  const auto listening = std::make_shared<Listening>();
  SetObserver(listening);
  const ScopeGuard request;
  for (int nth = 10; nth < 40; ++nth) Append({"store" + std::to_string(nth), "log", std::uint64_t{7}, 400'000});
  Serialize();
  const std::size_t lost = listening->counted.size();
  EXPECT_GT(lost, 10U) << "of many datastores";
  Serialize();
  SetObserver(nullptr);
  EXPECT_EQ(listening->counted.size(), lost) << "each is counted once for one lineage";
  ASSERT_EQ(listening->warned.size(), 1U);
  EXPECT_NE(listening->warned[0].find("', 'store"), std::string::npos) << listening->warned[0];
}

TEST(Settings, OutsideOfWhatTheyTakeAreRefused) {
  Settings settings;
  settings.max_lineage_bytes = 63;
  EXPECT_THROW(Configure(settings), ConfigurationError);
  settings = {};
  settings.max_timeout = std::chrono::duration<double>(0);
  EXPECT_THROW(Configure(settings), ConfigurationError);
  settings = {};
  settings.peers["http://posts"] = Answers::kAlways;
  EXPECT_THROW(Configure(settings), ConfigurationError);
}

}  // namespace
}  // namespace antipode
