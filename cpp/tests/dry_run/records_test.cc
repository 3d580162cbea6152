// The records of a process: whole lines of a schema that all languages share, and lints.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "antipode/barrier.h"
#include "antipode/dry_run.h"
#include "antipode/floor.h"
#include "antipode/observer.h"
#include "antipode/propagation.h"
#include "antipode/scope.h"
#include "antipode/shim.h"
#include "antipode/stored.h"
#include "dry_run/json.h"
#include "dry_run/recorded.h"
#include "scripts.h"
#include "virtual_clock.h"

namespace antipode {
namespace {

using json::Json;

void Write() { RecordWrite({"posts", "log", std::uint64_t{5}}); }

TEST(Records, BeginWithTheProcessAndNumberTheirLines) {
  Settings settings;
  settings.region = "eu";
  const Recorded recorded(settings);
  const ScopeGuard request;
  Write();
  const auto lines = recorded.Of();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["kind"], "process");
  EXPECT_EQ(lines[0]["region"], "eu");
  EXPECT_EQ(lines[0]["pid"], getpid());
  EXPECT_EQ(lines[0]["language"], "cpp");
  for (int number = 0; number < 3; ++number) {
    EXPECT_EQ(lines[static_cast<std::size_t>(number)]["n"], number);
    EXPECT_EQ(lines[static_cast<std::size_t>(number)]["process"], lines[0]["process"]);
    EXPECT_EQ(lines[static_cast<std::size_t>(number)]["v"], 1);
  }
  EXPECT_EQ(lines[2]["write"], Json::parse(R"({"datastore":"posts","log":"log","version":"5"})"));
  EXPECT_EQ(lines[2]["request"], lines[1]["request"]);
}

TEST(Records, OfAChildProcessAreAFileOfItsOwn) {
  const Recorded recorded;
  const ScopeGuard request;
  Write();
  const pid_t child = fork();
  if (child == 0) {
    Write();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  Write();
  EXPECT_EQ(recorded.files(), 2U);
  EXPECT_EQ(recorded.Of("process").size(), 2U);
  EXPECT_EQ(recorded.Of("write").size(), 3U);
}

TEST(Records, ThatCannotBeWrittenAreCountedAndStopNobody) {
  Settings settings;
  settings.mode = Mode::kDryRun;
  settings.dry_run_dir = "/proc/no-folder";
  const SettingsGuard guard(settings);
  const auto before = Metrics()[{"dry_run_unwritten", ""}];
  const ScopeGuard request;
  Write();
  const auto now = Metrics()[{"dry_run_unwritten", ""}];
  EXPECT_EQ(now, before + 1);
}

TEST(Records, NameTheTestThatRuns) {
  const Recorded recorded;
  SetRunningTest("Feed.ShowsThePost");
  { const ScopeGuard request; }
  SetRunningTest(std::nullopt);
  { const ScopeGuard request; }
  const auto scopes = recorded.Of("scope");
  EXPECT_EQ(scopes[0]["test"], "Feed.ShowsThePost");
  EXPECT_FALSE(scopes[1].contains("test"));
}

TEST(Records, AreInAscii) {
  EXPECT_EQ(dry_run::json::Text("a\"b\\c\n"), R"("a\"b\\c\u000a")");
  EXPECT_EQ(dry_run::json::Text("\xC3\xA9"), R"("\u00e9")");
  EXPECT_EQ(dry_run::json::Text("\xF0\x9F\x98\x80"), R"("\ud83d\ude00")");
  EXPECT_EQ(dry_run::json::Text("\xFFz\xC3"), R"("\ufffdz\ufffd")") << "what is no UTF-8";
  EXPECT_EQ(dry_run::json::Text("\xED\xA0\x80"), R"("\ufffd\ufffd\ufffd")") << "nor what stands for no character";
}

TEST(Records, OfAPromiseNameItsId) {
  const Recorded recorded;
  const ScopeGuard request;
  const Promise made = MakePromise("posts", Seconds(60));
  const auto writes = recorded.Of("write");
  ASSERT_EQ(writes.size(), 1U);
  EXPECT_EQ(writes[0]["write"]["log"], "promise");
  EXPECT_EQ(writes[0]["write"]["version"], made.id);
}

/// The lints of a dry run, each with its datastore and detail.
std::vector<std::vector<std::string>> LintsIn(const Recorded& recorded) {
  std::vector<std::vector<std::string>> lints;
  for (const Json& each : recorded.Of("lint")) lints.push_back({each["lint"], each["datastore"], each["detail"]});
  return lints;
}

using Lints = std::vector<std::vector<std::string>>;

/// What the current request sends.
std::string Sent() { return CurrentScope()->text(); }

TEST(Lint, SaysOfAWriteThatItCameAfterTheResponse) {
  const Recorded recorded;
  const ScopeGuard request;
  AnswerOf(*CurrentScope());
  Write();
  EXPECT_EQ(LintsIn(recorded), (Lints{{"after-response", "posts", ""}}));
}

TEST(Lint, SaysOfAWriteThatItHasNoScopeAndThrowsNothing) {
  Settings settings;
  settings.on_unscoped = Policy::kRaise;
  const Recorded recorded(settings);
  Write();
  EXPECT_EQ(LintsIn(recorded), (Lints{{"unscoped-write", "posts", ""}}));
  EXPECT_EQ(recorded.Of("lint")[0]["request"], nullptr);
}

BarrierOptions Options() {
  BarrierOptions options;
  options.timeout = Seconds(1);
  return options;
}

TEST(Lint, SaysOfABarrierThatItHadNothingToWaitForAndOfNoCheck) {
  const Recorded recorded;
  {
    const ScopeGuard request;
    Barrier(Options());
    Check();
  }
  EXPECT_EQ(LintsIn(recorded), (Lints{{"nothing-to-wait-for", "", "its lineage is empty"}}));
  EXPECT_EQ(recorded.Of("barrier").size(), 2U);
}

TEST(Lint, SaysOfABarrierThatNothingOfItsLineageCanBeWaitedFor) {
  const Recorded recorded;
  const ScopeGuard request;
  Write();
  Barrier(Options());
  EXPECT_EQ(LintsIn(recorded), (Lints{{"nothing-to-wait-for", "", "nothing of it can be waited for"}}));
}

TEST(Lint, SaysOfAReadThatNobodyKnowsItsLineage) {
  const Recorded recorded;
  agent::VirtualClock clock;
  const auto posts = agent::StoreOf({{"datastore", "posts"}}, clock);
  const ScopeGuard request;
  StoredLineage("posts", "what is no lineage");
  StoredLineage("users", "which has no store here");
  Extract({{"baggage", "antipode=nonsense"}});
  Count("companion_absent", "posts");
  posts->Close();
  EXPECT_EQ(LintsIn(recorded),
            (Lints{{"unknown-lineage", "posts", "unreadable"}, {"unknown-lineage", "posts", "absent"}}));
}

TEST(Lint, SaysOfWhatLeavesThatATransactionHasWrittenAndIsOpen) {
  const Recorded recorded;
  const int connection = 0;
  const ScopeGuard request;
  RecordUncommitted("posts", &connection, true);
  const std::string handed_over = CurrentScope()->snapshot();
  EXPECT_TRUE(LintsIn(recorded).empty()) << "a context that is handed over does not leave: " << handed_over;
  Sent();
  RecordUncommitted("posts", &connection, false);
  Sent();
  EXPECT_EQ(LintsIn(recorded), (Lints{{"in-transaction", "posts", ""}}));
}

TEST(Lint, SaysOfAReadThatItHasNoScopeAndThrowsNothing) {
  const Recorded recorded;
  agent::VirtualClock clock;
  const auto posts = agent::StoreOf({{"datastore", "posts"}, {"reads_from", "replica"}}, clock);
  const auto before = Metrics()[{"unscoped_read", "posts"}];
  EXPECT_EQ(Floor::Current(*posts), nullptr);
  EXPECT_EQ(Floor::Current(*posts, false), nullptr);
  {
    const ScopeGuard request;
    Floor::Current(*posts);
  }
  const auto now = Metrics()[{"unscoped_read", "posts"}];
  EXPECT_EQ(now, before + 1);
  posts->Close();
  EXPECT_EQ(LintsIn(recorded), (Lints{{"unscoped-read", "posts", ""}}));
}

TEST(Lint, SaysOfALineageThatIsStoredDuringAnOpenTransaction) {
  const Recorded recorded;
  const int connection = 0;
  const auto before = Metrics()[{"sent_before_commit", "posts"}];
  {
    const ScopeGuard request;
    StoredText(Current());
    RecordUncommitted("posts", &connection, true);
    StoredText(Current());
    RecordUncommitted("posts", &connection, false);
    StoredText(Current());
  }
  const auto now = Metrics()[{"sent_before_commit", "posts"}];
  EXPECT_EQ(now, before + 1);
  EXPECT_EQ(LintsIn(recorded), (Lints{{"in-transaction", "posts", ""}}));
}

TEST(Lint, SaysOfAReadAndABarrierThatTheyCannotSeeAnOpenTransaction) {
  const Recorded recorded;
  agent::VirtualClock clock;
  const auto posts = agent::StoreOf({{"datastore", "posts"}, {"reads_from", "replica"}}, clock);
  const int connection = 0;
  const auto before = Metrics()[{"read_before_commit", "posts"}];
  {
    const ScopeGuard request;
    Floor::Current(*posts);
    RecordUncommitted("posts", &connection, true);
    EXPECT_EQ(Uncommitted(), std::set<std::string>{"posts"});
    Floor::Current(*posts, true, &connection);
    EXPECT_TRUE(LintsIn(recorded).empty()) << "the transaction sees its own writes";
    Floor::Current(*posts);
    BarrierOptions options;
    Check(options);
    options.only = std::set<std::string>{"users"};
    Check(options);
    RecordUncommitted("posts", &connection, false);
    EXPECT_TRUE(Uncommitted().empty());
    Floor::Current(*posts);
  }
  const auto now = Metrics()[{"read_before_commit", "posts"}];
  EXPECT_EQ(now, before + 2);
  posts->Close();
  const auto lints = LintsIn(recorded);
  ASSERT_EQ(lints.size(), 2U);
  for (const auto& lint : lints) EXPECT_EQ(lint[0], "read-before-commit");
  EXPECT_EQ(lints[0][2].rfind("read, written at ", 0), 0U) << lints[0][2];
  EXPECT_EQ(lints[1][2].rfind("barrier, written at ", 0), 0U) << lints[1][2];
}

TEST(Lint, SaysNothingOfWhatAnotherRequestSends) {
  const Recorded recorded;
  const int connection = 0;
  {
    const ScopeGuard request;
    RecordUncommitted("posts", &connection, true);
  }
  const ScopeGuard other;
  Sent();
  EXPECT_TRUE(LintsIn(recorded).empty());
}

}  // namespace
}  // namespace antipode
