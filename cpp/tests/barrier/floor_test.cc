// What a read must see, and what it proves.
#include "antipode/floor.h"

#include <gtest/gtest.h>

#include "antipode/barrier.h"
#include "antipode/observer.h"
#include "antipode/shim.h"
#include "floors.h"
#include "settings_guard.h"
#include "told_clock.h"

namespace antipode {
namespace {

const WriteId kWrite{"posts", "log", std::uint64_t{7}, 400'000};

/// A store whose clients hold reads back.
class Holding final : public Store {
 public:
  Holding() : Store("posts", ReadsFrom::kReplica, ReadBarriers::kAuto) {}
  [[nodiscard]] bool Floors() const override { return true; }
  std::unique_ptr<Endpoint> OpenEndpoint(double) override { throw Unreachable("reads ask themselves"); }
};

// What was shown of some demands says nothing of one more.
TEST(AFloor, IsWithinOneThatDemandsAllOfIt) {
  const ToldClock clock;
  const auto one = DemandOf({kWrite});
  const auto other = DemandOf({WriteId{"posts", "log", std::uint64_t{9}}});
  const auto first = FloorOf({one}, clock);
  const auto both = FloorOf({one, other}, clock);
  EXPECT_TRUE(first->Within(both.get()));
  EXPECT_FALSE(both->Within(first.get()));
  EXPECT_FALSE(first->Within(nullptr));
}

/// Reads that were answered although they may be stale.
std::uint64_t Served() { return Metrics()[{"served_stale", "posts"}]; }

Observation Shown(Status status) {
  Observation shown;
  shown.server = "server";
  shown.statuses[kWrite] = status;
  return shown;
}

/// Of the write, and of what nobody knows.
Lineage Flawed() { return Lineage(LineageParts{{kWrite}, {{"posts", "in_doubt"}}, {}, 0, {}}); }

class AReadThatWaits : public testing::Test {
 protected:
  AReadThatWaits() { Register(store_); }
  ~AReadThatWaits() override { store_->Close(); }

  std::shared_ptr<Holding> store_ = std::make_shared<Holding>();

 private:
  SettingsGuard settings_;
};

// A read that is shown all that can be shown is counted once, and the next ones build on it.
TEST_F(AReadThatWaits, ProvesWhatWasShownWhateverItsLineageMisses) {
  const ScopeGuard request(Flawed());
  const std::uint64_t before = Served();
  const auto floor = Floor::Current(*store_);
  floor->Hold([](double) { return Shown(Status::kVisible); });
  EXPECT_EQ(Served(), before + 1);
  EXPECT_FALSE(floor->Served());
  floor->Pass();
  EXPECT_EQ(Served(), before + 1);
  EXPECT_TRUE(Floor::Current(*store_)->Proved("server", 60));
}

// What a barrier that was called refuses is served to nobody, whatever the lineage misses.
TEST_F(AReadThatWaits, IsNotCountedWhereItThrows) {
  const ScopeGuard request(Flawed());
  BarrierOptions options;
  options.timeout = Seconds(0.01);
  options.lineage = Lineage({kWrite});
  options.at = At::kRead;
  Barrier(options);
  const std::uint64_t before = Served();
  const auto floor = Floor::Current(*store_);
  EXPECT_THROW(floor->Hold([](double) { return Shown(Status::kNotYet); }), BarrierTimeout);
  EXPECT_EQ(Served(), before);
}

}  // namespace
}  // namespace antipode
