// What a barrier records of what its watchers see, without threads.
#include "barrier/waiter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "antipode/shim.h"
#include "settings_guard.h"
#include "told_clock.h"

namespace antipode {
namespace {

Observation Visible(const std::string& server, const std::set<WriteId>& writes) {
  Observation shown;
  shown.server = server;
  for (const WriteId& each : writes) shown.statuses[each] = Status::kVisible;
  return shown;
}

/// A store that shows all.
class Showing final : public Store {
 public:
  Showing(const std::string& datastore, Clock& clock) : Store(datastore, ReadsFrom::kReplica), clock_(clock) {}

  [[nodiscard]] Clock& clock() const override { return clock_; }
  std::unique_ptr<Endpoint> OpenEndpoint(double) override { return std::make_unique<Connection>(); }

 private:
  class Connection final : public Endpoint {
   public:
    Observation Observe(const std::set<WriteId>& writes, double) override { return Visible("server-1", writes); }
  };

  Clock& clock_;
};

class AWaiter : public testing::Test {
 protected:
  AWaiter() : first_(std::make_shared<Showing>("a", clock_)), other_(std::make_shared<Showing>("b", clock_)) {
    Register(first_);
    Register(other_);
  }
  ~AWaiter() override {
    for (const auto& each : waiters_) each->Cancel();
    for (const auto& store : {first_, other_}) {
      if (IsWatching(*store)) store->watcher()->Step();
      store->Close();
    }
  }

  Wait Waiting(Pending pending) { return {std::move(pending), {}, {}, {}, clock_.Now(), clock_.UnixSeconds(), 9}; }
  std::shared_ptr<Waiter> WaiterOf(Wait& wait, Purpose purpose = Purpose::kBarrier) {
    const auto notify = [this] { ++notified_; };
    return waiters_.emplace_back(std::make_shared<Waiter>(wait, notify, clock_, purpose));
  }
  /// Whether the watcher of a store is to be stepped.
  static bool IsWatching(const Store& store) {
    const auto names = WatchersAtWork();
    return std::count(names.begin(), names.end(), "antipode-watch-" + store.datastore()) == 1;
  }

  const WriteId write_{"a", "log", std::uint64_t{7}};
  const WriteId later_{"b", "log", std::uint64_t{1}};
  ToldClock clock_;
  int notified_ = 0;
  std::shared_ptr<Showing> first_;
  std::shared_ptr<Showing> other_;

 private:
  SettingsGuard settings_;
  std::vector<std::shared_ptr<Waiter>> waiters_;
};

// A poll that ends after the cancellation changes no outcome, and notifies nobody.
TEST_F(AWaiter, RecordsNothingOnceCancelled) {
  Wait wait = Waiting({{"a", {write_}}});
  const auto waiter = WaiterOf(wait);
  waiter->Cancel();
  waiter->Unreached("a", "late");
  waiter->Take("a", Visible("server-1", {write_}));
  EXPECT_TRUE(waiter->Wanted("a").empty());
  EXPECT_EQ(wait.Result(1).outcomes.at(0).status, Status::kNotYet);
  EXPECT_EQ(notified_, 0);
}

// The watcher forgets it at once, and does not find out at its next poll.
TEST_F(AWaiter, IsWatchedNoLongerOnceCancelled) {
  Wait wait = Waiting({{"a", {write_}}});
  const auto waiter = WaiterOf(wait);
  waiter->Subscribe();
  EXPECT_FALSE(first_->watcher()->Woken());
  waiter->Cancel();
  EXPECT_TRUE(first_->watcher()->Woken());
}

// A barrier of one poll of each datastore polls twice what was met before a wait.
TEST_F(AWaiter, OfOnePollPollsAgainWhatIsAskedAgain) {
  Wait wait = Waiting({{"a", {write_}}, {"b", {later_}}});
  const auto waiter = WaiterOf(wait, Purpose::kCheck);
  waiter->Take("a", Visible("server-1", {write_}));
  clock_.now_s = 0.9;
  wait.Unreached("b", "late", clock_.now_s);
  clock_.now_s = 1;
  waiter->Take("b", Visible("server-2", {later_}));
  EXPECT_EQ(waiter->Wanted("a"), std::set<Dependency>{write_});
  EXPECT_EQ(notified_, 0);
  ASSERT_TRUE(IsWatching(*first_));
  EXPECT_NE(first_->watcher()->Step(), std::nullopt);
  EXPECT_EQ(notified_, 1);
  EXPECT_TRUE(wait.Result(clock_.now_s).ok());
}

}  // namespace
}  // namespace antipode
