// Where a router of reads sends the next one.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <set>
#include <string>

#include "antipode/barrier.h"
#include "antipode/observer.h"
#include "antipode/shim.h"
#include "runtime/clock.h"
#include "settings_guard.h"

namespace antipode {
namespace {

/// The clock of this machine, and how far it was set forward.
class Advanced final : public Clock {
 public:
  [[nodiscard]] double Now() const override { return SystemClock().Now() + by_s; }
  [[nodiscard]] double UnixSeconds() const override { return SystemClock().UnixSeconds() + by_s; }
  void Spawn(const std::shared_ptr<Stepper>& stepper) override { SystemClock().Spawn(stepper); }

  std::atomic<double> by_s{0};
};

/// One server of a datastore, whose position a test sets.
class Server final : public Store {
 public:
  Server(ReadsFrom reads_from, Advanced& clock) : Store("routed", reads_from), clock_(clock) {}

  std::atomic<std::uint64_t> position{0};
  std::atomic<int> checks{0};
  std::string refusal;  ///< Why no connection can be made.

  [[nodiscard]] Clock& clock() const override { return clock_; }
  [[nodiscard]] bool Fences() const override { return reads_from() == ReadsFrom::kPrimary; }
  std::set<WriteId> Fence(double) override { return {{"routed", "log", position.load(), 0, true}}; }
  std::unique_ptr<Endpoint> OpenEndpoint(double) override {
    if (!refusal.empty()) throw Unreachable(refusal);
    return std::make_unique<Connection>(*this);
  }

 private:
  class Connection final : public Endpoint {
   public:
    explicit Connection(Server& server) : server_(server) {}
    Observation Observe(const std::set<WriteId>& writes, double) override {
      ++server_.checks;
      Observation shown;
      shown.server = "server";
      for (const WriteId& each : writes) {
        const bool visible = std::get<std::uint64_t>(each.version) <= server_.position;
        shown.statuses[each] = visible ? Status::kVisible : Status::kNotYet;
      }
      return shown;
    }

   private:
    Server& server_;
  };

  Advanced& clock_;
};

class ARouter : public testing::Test {
 protected:
  ARouter() {
    primary_->position = 9;
    Register(primary_);
    Register(replica_);
    Wait(Seconds(0.001));
  }
  ~ARouter() override {
    primary_->Close();
    replica_->Close();
  }

  static void Wait(Seconds auto_timeout) {
    Settings settings = CurrentSettings();
    settings.auto_timeout = auto_timeout;
    settings.max_timeout = Seconds(600);
    Configure(settings);
  }
  static ReadsFrom Asked() { return RouteReads("routed"); }
  static std::uint64_t Moved() { return Metrics()[{"reads_at_primary", "routed"}]; }

  const Lineage cause_{{WriteId{"routed", "log", std::uint64_t{7}}}};
  SettingsGuard settings_;
  Advanced clock_;
  std::shared_ptr<Server> primary_ = std::make_shared<Server>(ReadsFrom::kPrimary, clock_);
  std::shared_ptr<Server> replica_ = std::make_shared<Server>(ReadsFrom::kReplica, clock_);
};

// Of what the request does not depend on, nobody is asked.
TEST_F(ARouter, ReadsAtTheReplicaWhereNothingIsWaitedFor) {
  EXPECT_EQ(Asked(), ReadsFrom::kReplica);
  const ScopeGuard request(Lineage({{"others", "log", std::uint64_t{7}}}));
  EXPECT_EQ(Asked(), ReadsFrom::kReplica);
  EXPECT_EQ(replica_->checks, 0);
}

TEST_F(ARouter, WaitsForTheReplicaWithinTheTimeOfTheRequest) {
  Wait(Seconds(600));
  const ScopeGuard request(cause_);
  auto asked = std::async(std::launch::async, [captured = Capture()] {
    const ScopeGuard branch(captured);
    return Asked();
  });
  replica_->position = 7;
  EXPECT_EQ(asked.get(), ReadsFrom::kReplica);
}

// It does not go back in time, and asks the replica no more; the next request does.
TEST_F(ARouter, StaysAtThePrimary) {
  const std::uint64_t before = Moved();
  {
    const ScopeGuard request(cause_);
    EXPECT_EQ(Asked(), ReadsFrom::kPrimary);
    replica_->position = 9;
    const int checks = replica_->checks;
    for (int read = 0; read < 60; ++read) EXPECT_EQ(Asked(), ReadsFrom::kPrimary);
    EXPECT_EQ(replica_->checks, checks);
    EXPECT_EQ(Moved(), before + 61);
  }
  const ScopeGuard next(cause_);
  EXPECT_EQ(Asked(), ReadsFrom::kReplica);
}

// What was read there may have come after the write that moved it.
TEST_F(ARouter, GoesBackInLongRequestsOnceTheReplicaShowsAllOfThePrimary) {
  const ScopeGuard request(cause_);
  EXPECT_EQ(Asked(), ReadsFrom::kPrimary);
  clock_.by_s = 31;
  replica_->position = 7;
  EXPECT_EQ(Asked(), ReadsFrom::kPrimary);
  replica_->position = 9;
  EXPECT_EQ(Asked(), ReadsFrom::kReplica);
  EXPECT_EQ(Asked(), ReadsFrom::kReplica);
}

TEST_F(ARouter, DoesNotWaitForAServerThatIsNotThere) {
  Wait(Seconds(600));
  replica_->refusal = "Connection refused";
  for (int request = 0; request < 6; ++request) {
    const ScopeGuard reader(cause_);
    EXPECT_EQ(Asked(), ReadsFrom::kPrimary);
  }
}

// What a router asks before it goes another way rings no alert on barriers that fail.
TEST_F(ARouter, CountsNoBarrierThatFailed) {
  const std::uint64_t before = Metrics()[{"barrier_barrier_timeout", ""}];
  const ScopeGuard request(cause_);
  EXPECT_EQ(Asked(), ReadsFrom::kPrimary);
  EXPECT_EQ((Metrics()[{"barrier_barrier_timeout", ""}]), before);
}

TEST_F(ARouter, NeedsAPrimary) {
  primary_->Close();
  EXPECT_THROW(Asked(), ConfigurationError);
}

TEST_F(ARouter, ReadsAtTheReplicaInADryRun) {
  Settings settings = CurrentSettings();
  settings.mode = Mode::kDryRun;
  Configure(settings);
  const ScopeGuard request(cause_);
  EXPECT_EQ(Asked(), ReadsFrom::kReplica);
}

}  // namespace
}  // namespace antipode
