// What a read must see, and what it proves.
#include "antipode/floor.h"

#include <gtest/gtest.h>

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

// A read that is shown all that can be shown is counted once, and the next ones build on it.
TEST(AFloor, ProvesWhatWasShownWhateverItsLineageMisses) {
  const SettingsGuard settings;
  const auto store = std::make_shared<Holding>();
  Register(store);
  {
    const ScopeGuard request(Lineage(LineageParts{{kWrite}, {{"posts", "in_doubt"}}, {}, 0, {}}));
    const auto served = [] { return Metrics()[{"served_stale", "posts"}]; };
    const std::uint64_t before = served();
    const auto floor = Floor::Current(*store);
    floor->Hold([](double) {
      Observation shown;
      shown.server = "server";
      shown.statuses[kWrite] = Status::kVisible;
      return shown;
    });
    EXPECT_EQ(served(), before + 1);
    EXPECT_FALSE(floor->Served());
    floor->Pass();
    EXPECT_EQ(served(), before + 1);
    EXPECT_TRUE(Floor::Current(*store)->Proved("server", 60));
  }
  store->Close();
}

}  // namespace
}  // namespace antipode
