// What became of unguarded reads: checked once they are over, a few at a time.
#include "dry_run/evidence.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "antipode/dry_run.h"
#include "antipode/floor.h"
#include "antipode/observer.h"
#include "antipode/scope.h"
#include "dry_run/recorded.h"
#include "scripts.h"
#include "virtual_clock.h"

namespace antipode {
namespace {

using json::Json;

/// A registered replica of posts.
class EvidenceOf : public testing::Test {
 protected:
  EvidenceOf()
      : posts_(agent::StoreOf({{"datastore", "posts"}, {"reads_from", "replica"}, {"floors", true}}, clock_)) {}
  ~EvidenceOf() override { posts_->Close(); }
  /// A request that writes and reads without a barrier.
  void WriteAndRead() {
    const ScopeGuard request;
    RecordWrite({"posts", "log", std::uint64_t{5}});
    Floor::Current(*posts_);
  }
  static Json Only(const Recorded& recorded) {
    const auto found = recorded.Of("evidence");
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? Json() : found[0];
  }

  agent::VirtualClock clock_;
  std::shared_ptr<agent::FakeStore> posts_;
};

TEST_F(EvidenceOf, AReadThatCannotHaveShownItsWriteIsThatAndHowLongItWouldHaveWaited) {
  const Recorded recorded;
  posts_->Advance("log", 4, 0);
  posts_->Advance("log", 5, 2.0);
  WriteAndRead();
  clock_.Run();
  const Json found = Only(recorded);
  EXPECT_EQ(found["confirmed"], true);
  EXPECT_NEAR(found["waited_s"].get<double>(), 2.0, 0.5);
  const auto reads = recorded.Of("read");
  ASSERT_EQ(reads.size(), 1U);
  EXPECT_EQ(found["of"], reads[0]["n"]);
  EXPECT_FALSE(found.contains("request"));
}

TEST_F(EvidenceOf, AReadAtAFastReplicaIsThatNobodyKnows) {
  const Recorded recorded;
  posts_->Advance("log", 5, 0);
  WriteAndRead();
  clock_.Run();
  const Json found = Only(recorded);
  EXPECT_EQ(found["confirmed"], nullptr);
  EXPECT_LT(found["waited_s"].get<double>(), 0.5);
}

TEST_F(EvidenceOf, AWriteThatDoesNotComeInTimeHasNoWait) {
  const Recorded recorded;
  posts_->Advance("log", 4, 0);
  WriteAndRead();
  clock_.Run();
  const Json found = Only(recorded);
  EXPECT_EQ(found["confirmed"], true);
  EXPECT_EQ(found["waited_s"], nullptr);
  EXPECT_GT(clock_.Now(), 10.0) << "it is looked for as long as the specification says";
}

TEST_F(EvidenceOf, AReadIsNotSoughtBeforeItIsOver) {
  const Recorded recorded;
  const ScopeGuard request;
  RecordWrite({"posts", "log", std::uint64_t{5}});
  Floor::Current(*posts_);
  clock_.Run();
  EXPECT_EQ(posts_->looks(), 0) << "its thread has not gone on";
  EXPECT_FALSE(CurrentScope()->text().empty());
  clock_.Run();
  EXPECT_GT(posts_->looks(), 0);
}

TEST_F(EvidenceOf, AReadOfAThreadThatEndedIsSought) {
  const Recorded recorded;
  posts_->Advance("log", 5, 0);
  std::shared_ptr<Scope> request;
  std::thread([&] {
    request = std::make_shared<Scope>();
    const ScopeGuard guard(request);
    RecordWrite({"posts", "log", std::uint64_t{5}});
    Floor::Current(*posts_);
  }).join();
  const ScopeGuard other;
  clock_.Run();
  EXPECT_GT(posts_->looks(), 0);
}

TEST_F(EvidenceOf, NoGuardedReadIsSought) {
  const Recorded recorded;
  {
    const ScopeGuard request(Lineage::Deserialize("1~kposts.5.log~0g-.kposts.5.log"));
    Floor::Current(*posts_);
  }
  clock_.Run();
  EXPECT_EQ(recorded.Of("read").size(), 1U);
  EXPECT_EQ(posts_->looks(), 0);
}

TEST_F(EvidenceOf, WhatIsKnownAtTheEndIsRecorded) {
  auto recorded = std::make_unique<Recorded>();
  posts_->Advance("log", 4, 0);
  WriteAndRead();
  Settings settings = CurrentSettings();
  settings.mode = Mode::kEnforce;
  Configure(settings);
  const Json found = Only(*recorded);
  EXPECT_EQ(found["waited_s"], nullptr);
  clock_.Run();
  EXPECT_EQ(recorded->Of("evidence").size(), 1U);
}

TEST_F(EvidenceOf, AFewAreLookedIntoAtATimeAndTheRestIsCounted) {
  const Recorded recorded;
  posts_->Advance("log", 4, 0);
  const auto before = Metrics()[{"dry_run_evidence_dropped", "posts"}];
  for (int i = 0; i < 10; ++i) WriteAndRead();
  const auto dropped = Metrics()[{"dry_run_evidence_dropped", "posts"}] - before;
  EXPECT_EQ(dropped, 2U);
  clock_.Run();
  EXPECT_EQ(recorded.Of("evidence").size(), 8U);
}

TEST_F(EvidenceOf, AReadThatIsOpenBeyondTheBoundIsCounted) {
  const Recorded recorded;
  const auto before = Metrics()[{"dry_run_evidence_dropped", "posts"}];
  std::promise<void> sent;
  std::promise<void> may_end;
  std::thread reader([&] {
    const ScopeGuard request;
    RecordWrite({"posts", "log", std::uint64_t{5}});
    Floor::Current(*posts_);
    sent.set_value();
    may_end.get_future().wait();
  });
  sent.get_future().wait();
  clock_.At(11, [] {});
  clock_.Run();
  { const ScopeGuard other; }
  const auto dropped = Metrics()[{"dry_run_evidence_dropped", "posts"}] - before;
  EXPECT_EQ(dropped, 1U);
  may_end.set_value();
  reader.join();
  { const ScopeGuard other; }
  clock_.Run();
  EXPECT_EQ(posts_->looks(), 0);
}

TEST(Evidence, OfOneFindingIsASample) {
  dry_run::Evidence evidence;
  const dry_run::Evidence::Finding finding{"posts", "feed.cc", 7};
  int wanted = 0;
  for (int i = 0; i < 300; ++i) wanted += evidence.Wants(finding) ? 1 : 0;
  EXPECT_GE(wanted, 100);
  EXPECT_LT(wanted, 300);
  EXPECT_TRUE(evidence.Wants({"posts", "feed.cc", 8})) << "another line is another finding";
}

}  // namespace
}  // namespace antipode
