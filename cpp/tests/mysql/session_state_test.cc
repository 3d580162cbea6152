// What is known of the session of one connection, told of statements and replies.
#include "mysql/session_state.h"

#include <gtest/gtest.h>

#include <string_view>

#include "floors.h"
#include "told_clock.h"

namespace antipode::mysql {
namespace {

constexpr Flags kAutocommit{true, false};
constexpr Flags kOpen{true, true};
constexpr unsigned kNoTable = 1146;
constexpr std::string_view kInsert = "INSERT INTO t VALUES (1)";
constexpr std::string_view kSelect = "SELECT a FROM t";

/// A session to which a server answers as it is told here.
class ASession : public testing::Test {
 protected:
  ASession() { session_.Reaches("server-1"); }

  Due Called(std::string_view sql, Flags flags, std::uint64_t changed = 0) {
    session_.Starts(EffectsOf(sql), clock_.Now());
    flags_ = flags;
    return session_.Ended(End::kDone, changed, 0, false, flags_);
  }
  Due Refused(std::string_view sql, unsigned number) {
    session_.Starts(EffectsOf(sql), clock_.Now());
    return session_.Ended(End::kRefused, std::nullopt, number, false, flags_);
  }
  Verdict Judged(const std::shared_ptr<Floor>& floor) {
    return session_.Judge(floor, EffectsOf(kSelect), clock_.Now());
  }
  std::shared_ptr<Floor> Demanding(Demand::Proofs proofs = {}) const {
    return FloorOf({DemandOf({kWrite}, std::move(proofs))}, clock_);
  }
  /// A check of the library's own showed it.
  void Shown() {
    Observation seen;
    seen.statuses[kWrite] = Status::kVisible;
    session_.Passed(Demanding(), seen, false, clock_.Now());
  }

  ToldClock clock_{1'000};
  SessionState session_{kAutocommit};

 private:
  const WriteId kWrite{"posts", "0.1", std::uint64_t{7}};
  Flags flags_ = kAutocommit;
};

// Whatever the error is: those before it may have been executed.
TEST_F(ASession, MayHaveWrittenWhereOneOfSeveralStatementsFailed) {
  const std::string several = std::string(kInsert) + "; " + std::string(kInsert);
  EXPECT_EQ(Refused(kInsert, kNoTable), Due::kNothing);
  EXPECT_EQ(Refused(several, kNoTable), Due::kSample);
  Called("COMMIT", kAutocommit);
  Called("BEGIN", kOpen);
  EXPECT_NE(Refused(several, kNoTable), Due::kNothing);
  EXPECT_EQ(Called("COMMIT", kAutocommit), Due::kSample);
}

// Until logging is on again.
TEST_F(ASession, WithoutALogHasNoPositions) {
  Called("SET sql_log_bin = 0", kAutocommit);
  EXPECT_EQ(Called(kInsert, kAutocommit, 1), Due::kUncovered);
  Called("SET sql_log_bin = 1", kAutocommit);
  EXPECT_EQ(Called(kInsert, kAutocommit, 1), Due::kSample);
}

// Neither what was seen there, in its snapshot as well, nor a proof.
TEST_F(ASession, TakesNothingFromAnotherServer) {
  EXPECT_EQ(Judged(Demanding()), Verdict::kHold);
  Shown();
  EXPECT_EQ(Judged(Demanding()), Verdict::kPass);
  session_.Reaches("server-1");
  EXPECT_EQ(Judged(Demanding()), Verdict::kPass);
  Called("BEGIN", kOpen);
  Called(kSelect, kOpen);
  EXPECT_EQ(Judged(Demanding()), Verdict::kPass);
  session_.Reaches("server-2");
  EXPECT_EQ(Judged(Demanding()), Verdict::kOldSnapshot);
  Called("COMMIT", kAutocommit);
  EXPECT_EQ(Judged(Demanding()), Verdict::kHold);
  EXPECT_EQ(Judged(Demanding({{"server-1", clock_.Now()}})), Verdict::kHold);
  EXPECT_EQ(Judged(Demanding({{"server-2", clock_.Now()}})), Verdict::kPass);
}

// A server that is reset in place keeps its connections: what it showed is asked for again.
TEST_F(ASession, RemembersForSeconds) {
  Shown();
  const auto proved = Demanding({{"server-1", clock_.Now()}});
  clock_.now_s += 1;
  EXPECT_EQ(Judged(Demanding()), Verdict::kPass);
  EXPECT_EQ(Judged(proved), Verdict::kPass);
  clock_.now_s += 2;
  EXPECT_EQ(Judged(Demanding()), Verdict::kHold);
  EXPECT_EQ(Judged(proved), Verdict::kHold);
}

// By a read of a trigger: what was seen since says nothing of it.
TEST_F(ASession, TakesASnapshotThatMayBeOpenForAnOldOne) {
  Called("BEGIN", kOpen);
  Called(kInsert, kOpen, 1);
  Shown();
  EXPECT_EQ(Judged(Demanding()), Verdict::kTriggered);
  Called("COMMIT", kAutocommit);
  EXPECT_EQ(Judged(Demanding()), Verdict::kPass);
}

}  // namespace
}  // namespace antipode::mysql
