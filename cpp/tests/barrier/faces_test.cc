// The ways to call a barrier, on the machine's clock: what they come to, and that nothing is left.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "antipode/barrier.h"
#include "antipode/floor.h"
#include "antipode/observer.h"
#include "antipode/shim.h"
#include "barrier/waiter.h"
#include "eventually.h"
#include "runtime/clock.h"
#include "settings_guard.h"

namespace antipode {
namespace {

/// A store in memory: one log, whose position any thread may move.
class Memory final : public Store {
 public:
  explicit Memory(const std::string& datastore) : Store(datastore) {}

  std::atomic<std::uint64_t> position{0};
  std::atomic<int> open{0};
  std::atomic<int> looks{0};
  std::atomic<bool> away{false};
  std::atomic<bool> floors{false};
  std::atomic<bool> ends_in_time{true};
  std::function<void()> on_check = [] {};
  std::atomic<bool> odd{false};  ///< Throws what is no std::exception.

  [[nodiscard]] bool Floors() const override { return floors; }
  std::unique_ptr<Endpoint> OpenEndpoint(double) override { return std::make_unique<Connection>(*this); }
  Observation Shows(const std::set<WriteId>& writes) {
    ++looks;
    on_check();
    if (away) throw Unreachable("away");
    if (odd) throw 42;
    Observation observation;
    observation.server = "server";
    for (const WriteId& each : writes) {
      const bool visible = std::get<std::uint64_t>(each.version) <= position;
      observation.statuses[each] = visible ? Status::kVisible : Status::kNotYet;
    }
    return observation;
  }

 private:
  class Connection final : public Endpoint {
   public:
    explicit Connection(Memory& store) : store_(store) { ++store_.open; }
    ~Connection() override { --store_.open; }
    [[nodiscard]] bool EndsInTime() const override { return store_.ends_in_time; }
    Observation Observe(const std::set<WriteId>& writes, double) override { return store_.Shows(writes); }

   private:
    Memory& store_;
  };
};

/// A client of several replicas: only a read shows which one answers.
class Pool final : public Store {
 public:
  explicit Pool(const std::string& datastore) : Store(datastore, ReadsFrom::kReplica) {}
  [[nodiscard]] bool Floors() const override { return true; }
  [[nodiscard]] bool CanPoll() const override { return false; }
  std::unique_ptr<Endpoint> OpenEndpoint(double) override { throw Unreachable("nobody polls it"); }
};

class Faces : public testing::Test {
 protected:
  Faces() : store_(std::make_shared<Memory>("posts")) { Register(store_); }
  ~Faces() override { store_->Close(); }

  static BarrierOptions Options(double timeout_s = 5) {
    BarrierOptions options;
    options.timeout = Seconds(timeout_s);
    options.lineage = Lineage({{"posts", "log", std::uint64_t{5}, 400'000}});
    return options;
  }
  void Reach() { store_->position = 5; }
  [[nodiscard]] testing::AssertionResult LooksAtLeast(int times) const {
    return Eventually([&] { return store_->looks >= times; });
  }

  std::shared_ptr<Memory> store_;

 private:
  SettingsGuard settings_;
};

TEST_F(Faces, WaitUntilTheWriteIsVisible) {
  auto waiting = BarrierAsync(Options());
  std::promise<BarrierResult> called;
  auto handle = BarrierCallback([&](const BarrierResult& result) { called.set_value(result); }, Options());
  auto blocking = std::async(std::launch::async, [] { return Barrier(Options()); });
  auto trying = std::async(std::launch::async, [] { return TryBarrier(Options()); });
  EXPECT_TRUE(LooksAtLeast(3));
  Reach();
  EXPECT_TRUE(waiting.get().ok());
  EXPECT_TRUE(called.get_future().get().ok());
  EXPECT_TRUE(blocking.get().ok());
  EXPECT_TRUE(trying.get());
  EXPECT_FALSE(handle.Cancel());
}

TEST_F(Faces, AgreeAboutWhatIsNotVisible) {
  EXPECT_THROW(Barrier(Options(0.05)), BarrierTimeout);
  EXPECT_THROW(BarrierAsync(Options(0.05)).get(), BarrierTimeout);
  const BarrierAttempt attempt = TryBarrier(Options(0.05));
  EXPECT_FALSE(attempt);
  EXPECT_EQ(attempt.code, "barrier_timeout");
  EXPECT_EQ(attempt.result.outcomes.at(0).status, Status::kNotYet);
  const BarrierResult checked = Check(Options());
  EXPECT_EQ(checked.outcomes.at(0).status, Status::kNotYet);
  BarrierOptions returning = Options(0.05);
  returning.raise_unmet = false;
  EXPECT_FALSE(Barrier(returning));
}

/// Hears the first warning.
class Warning final : public Observer {
 public:
  void Warned(std::string_view message) noexcept override {
    if (!heard_.exchange(true)) first.set_value(std::string(message));
  }
  std::promise<std::string> first;

 private:
  std::atomic<bool> heard_{false};
};

// A callback that throws what is no std::exception is reported, and does not end the program.
TEST_F(Faces, SurviveACallbackThatThrowsAnything) {
  const auto warning = std::make_shared<Warning>();
  SetObserver(warning);
  Reach();
  const auto handle = BarrierCallback([](const BarrierResult&) { throw 42; }, Options());
  EXPECT_EQ(warning->first.get_future().get(),
            "the callback of a barrier failed: what was thrown is no std::exception");
  SetObserver(nullptr);
}

// A shim of somebody else's that throws what is no std::exception ends the wait, and does not end the program.
TEST_F(Faces, SurviveAnEndpointThatThrowsAnything) {
  store_->odd = true;
  EXPECT_THROW(Barrier(Options()), VisibilityCheckError);
  store_->odd = false;
  Reach();
  ASSERT_TRUE(TryBarrier(Options()));
  store_->odd = true;  // Now there is a connection, which the caller's thread checks.
  EXPECT_THROW(Barrier(Options()), VisibilityCheckError);
}

TEST_F(Faces, NotifyNobodyWhoseWaitIsOver) {
  const WriteId write{"posts", "log", std::uint64_t{5}, 400'000};
  Wait wait({{"posts", {write}}}, {}, {}, {}, SystemClock().Now(), SystemClock().UnixSeconds(), 5);
  std::atomic<bool> begun{false};
  std::atomic<bool> cancelling{false};
  std::atomic<bool> ended{false};
  const auto notify = [&] {
    begun = true;
    EXPECT_TRUE(Eventually([&] { return cancelling.load(); }));
    for (int i = 0; i < 10'000; ++i) std::this_thread::yield();
    ended = true;
  };
  const auto waiter = std::make_shared<Waiter>(wait, notify, SystemClock(), Purpose::kBarrier);
  Reach();
  std::thread watcher([&] { waiter->Take("posts", store_->Shows({write})); });
  EXPECT_TRUE(Eventually([&] { return begun.load(); }));
  cancelling = true;
  waiter->Cancel();
  EXPECT_TRUE(ended) << "what a barrier waits on is destroyed when the barrier returns";
  watcher.join();
}

/// The machine's clock, which a test may put forward; the process goes by it meanwhile.
class ForwardClock final : public Clock {
 public:
  ForwardClock() { ReplaceSystemClock(this); }
  ~ForwardClock() override { ReplaceSystemClock(nullptr); }
  ForwardClock(const ForwardClock&) = delete;
  ForwardClock& operator=(const ForwardClock&) = delete;

  [[nodiscard]] double Now() const override { return machine_.Now() + forward_s; }
  [[nodiscard]] double UnixSeconds() const override { return machine_.UnixSeconds() + forward_s; }
  void Spawn(const std::shared_ptr<Stepper>& stepper) override { machine_.Spawn(stepper); }

  std::atomic<double> forward_s{0};

 private:
  Clock& machine_ = SystemClock();
};

TEST_F(Faces, DoNotWaitAgainForWhatACheckInTheirThreadTook) {
  constexpr double kTimeoutS = 30;
  Check(Options());  // Connects, in a thread that is about to end.
  ASSERT_TRUE(Eventually([&] {
    return store_->watcher()->TryLook({WriteId{"posts", "log", std::uint64_t{5}, 400'000}}, 1);
  }));
  const auto began = std::chrono::steady_clock::now();
  {
    ForwardClock clock;
    store_->on_check = [&clock] {
      clock.forward_s = clock.forward_s + kTimeoutS;
      throw Unreachable("no answer");
    };
    EXPECT_EQ(TryBarrier(Options(kTimeoutS)).code, "barrier_timeout");
    store_->Close();  // Nobody checks any more.
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::duration<double>(kTimeoutS / 2));
}

/// It shows all that was written, so that its answer would say nothing of the replicas: the read waits.
TEST_F(Faces, AskNoPrimaryWhatOnlyReadsSee) {
  const auto pool = std::make_shared<Pool>("posts");
  Register(pool);
  Reach();
  {
    const ScopeGuard request(*Options().lineage);
    const BarrierResult result = Check();
    ASSERT_EQ(result.outcomes.size(), 1U);
    EXPECT_EQ(result.outcomes[0].status, Status::kDeferred);
    EXPECT_EQ(store_->looks, 0);
    EXPECT_TRUE(Barrier(Options()));
    EXPECT_EQ(store_->looks, 1);
  }
  pool->Close();
}

TEST_F(Faces, LeaveChecksToAThreadThatMayTakeLonger) {
  store_->ends_in_time = false;
  Reach();
  std::atomic<bool> here{false};
  store_->on_check = [&here, caller = std::this_thread::get_id()] {
    here = here || std::this_thread::get_id() == caller;
  };
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Barrier(Options()));
  EXPECT_FALSE(here);
  store_->Close();
}

TEST_F(Faces, SayThatAServerIsAway) {
  store_->away = true;
  const BarrierAttempt attempt = TryBarrier(Options(0.05));
  EXPECT_EQ(attempt.code, "barrier_timeout");
  EXPECT_EQ(attempt.result.outcomes.at(0).status, Status::kUnreachable);
  EXPECT_EQ(store_->open, 0);
}

TEST_F(Faces, RefuseWhatHasNoDeadlineOrNothingToWaitFor) {
  EXPECT_THROW(Barrier(BarrierOptions()), std::invalid_argument);
  EXPECT_EQ(TryBarrier(BarrierOptions()).code, "argument");
  BarrierOptions options;
  options.timeout = Seconds(1);
  EXPECT_THROW(Barrier(options), ConfigurationError);
  EXPECT_THROW(BarrierAsync(options), ConfigurationError);
  const ScopeGuard request;
  EXPECT_TRUE(Barrier(options).outcomes.empty());
}

TEST_F(Faces, EndWhenTheShimIsClosed) {
  auto waiting = BarrierAsync(Options(20));
  EXPECT_TRUE(LooksAtLeast(1));
  store_->Close();
  EXPECT_THROW(waiting.get(), VisibilityCheckError);
  EXPECT_EQ(store_->open, 0);
}

TEST_F(Faces, CallNobodyBackOnceCancelled) {
  std::atomic<int> calls{0};
  auto handle = BarrierCallback([&](const BarrierResult&) { ++calls; }, Options(20));
  EXPECT_TRUE(LooksAtLeast(1));
  EXPECT_TRUE(handle.Cancel());
  Reach();
  EXPECT_TRUE(Barrier(Options()).ok());
  EXPECT_EQ(calls, 0);
}

TEST_F(Faces, LookOnOneConnectionHoweverManyWait) {
  std::vector<std::future<BarrierResult>> waiting;
  for (int n = 0; n < 20; ++n) waiting.push_back(BarrierAsync(Options()));
  EXPECT_TRUE(LooksAtLeast(3));
  EXPECT_EQ(store_->open, 1);
  Reach();
  for (auto& each : waiting) EXPECT_TRUE(each.get().ok());
}

TEST_F(Faces, LeaveFloorsToTheScopeThatTheyWereCalledIn) {
  store_->floors = true;
  const ScopeGuard request;
  BarrierOptions options = Options();
  options.at = At::kRead;
  EXPECT_EQ(BarrierAsync(options).get().outcomes.at(0).status, Status::kDeferred);
  const auto floor = Floor::Current(*store_);
  ASSERT_NE(floor, nullptr);
  std::thread later([this] {
    EXPECT_TRUE(LooksAtLeast(5));
    Reach();
  });
  floor->Hold([&](double) { return store_->Shows(floor->writes()); }, store_.get());
  later.join();
  EXPECT_TRUE(floor->Proved("server", 60));
}

TEST_F(Faces, HoldAReadNoLongerThanItsTimeout) {
  store_->floors = true;
  const ScopeGuard request;
  BarrierOptions options = Options(0.05);
  options.at = At::kRead;
  Barrier(options);
  const auto floor = Floor::Current(*store_);
  EXPECT_THROW(floor->Hold([&](double) { return store_->Shows(floor->writes()); }), BarrierTimeout);
  store_->away = true;
  EXPECT_THROW(floor->Hold([&](double) { return store_->Shows(floor->writes()); }), BarrierTimeout);
}

TEST_F(Faces, HoldReadsByThemselvesForTheTimeOfTheRequestTogether) {
  store_->floors = true;
  Settings settings;
  settings.barriers = ReadBarriers::kAuto;
  settings.auto_timeout = std::chrono::milliseconds(50);
  Configure(settings);
  const auto served = [] { return Metrics()[{"served_stale", "posts"}]; };
  const std::uint64_t before = served();
  const ScopeGuard request(*Options().lineage);
  {
    const BarriersGuard block(ReadBarriers::kExplicit);
    EXPECT_EQ(Floor::Current(*store_), nullptr);
  }
  for (std::uint64_t read = 1; read <= 3; ++read) {
    const int looks = store_->looks;
    const auto floor = Floor::Current(*store_);
    floor->Hold([&](double) { return store_->Shows(floor->writes()); });
    EXPECT_TRUE(floor->Served());
    EXPECT_EQ(served(), before + read);
    EXPECT_TRUE(read == 1 || store_->looks == looks + 1) << "no time is left after the first read";
  }
  settings.on_stale = OnStale::kRaise;
  Configure(settings);
  const auto floor = Floor::Current(*store_);
  EXPECT_THROW(floor->Hold([&](double) { return store_->Shows(floor->writes()); }), BarrierTimeout);
  Reach();
  EXPECT_TRUE(floor->Accepts(store_->Shows(floor->writes())));
  EXPECT_TRUE(Floor::Current(*store_)->Proved("server", 60));
}

/// What the library warns of.
class Listening final : public Observer {
 public:
  void Warned(std::string_view message) noexcept override { warned.emplace_back(message); }
  std::vector<std::string> warned;
};

TEST_F(Faces, LogWhatTheyDidNotGetOnceAMinute) {
  const auto listening = std::make_shared<Listening>();
  SetObserver(listening);
  BarrierOptions options = Options();
  options.lineage = Lineage(LineageParts{{}, {{"marked-of-this-test", "in_doubt"}}, {}, 0, {}});
  EXPECT_FALSE(Check(options).ok());
  EXPECT_TRUE(listening->warned.empty()) << "what a check says is its caller's to use";
  for (int times = 0; times < 2; ++times) EXPECT_THROW(Barrier(options), IncompleteLineage);
  SetObserver(nullptr);
  ASSERT_EQ(listening->warned.size(), 1U);
  EXPECT_EQ(listening->warned[0].find("a barrier did not see all that it depends on in 'marked-of-this-test' "
                                      "(in_doubt). It ended with incomplete_lineage: "),
            0U);
}

TEST_F(Faces, ServeFromAnOldSnapshotWhereNoBarrierWasCalled) {
  store_->floors = true;
  Settings settings;
  settings.barriers = ReadBarriers::kAuto;
  Configure(settings);
  const StaleSnapshot stale("an old snapshot");
  const auto shows_nothing = [](const Floor&) { return false; };
  const ScopeGuard request(*Options().lineage);
  const auto automatic = Floor::Current(*store_);
  automatic->FailSnapshot(stale, shows_nothing);
  EXPECT_TRUE(automatic->Served());
  BarrierOptions options = Options();
  options.at = At::kRead;
  Barrier(options);
  Append({"posts", "log", std::uint64_t{6}});
  const auto both = Floor::Current(*store_);
  EXPECT_THROW(both->FailSnapshot(stale, shows_nothing), StaleSnapshot);
  both->FailSnapshot(stale, [](const Floor&) { return true; });
  EXPECT_TRUE(both->Served());
}

TEST(MakePromise, EntersTheScopeAndIsBounded) {
  const SettingsGuard settings;
  const ScopeGuard request;
  const Promise made = MakePromise("posts", Seconds(60));
  EXPECT_EQ(Current().promises(), std::vector<Promise>{made});
  EXPECT_THROW(MakePromise("posts", Seconds(0)), std::invalid_argument);
  EXPECT_THROW(MakePromise("posts", Seconds(8 * 86'400)), std::invalid_argument);
  EXPECT_THROW(Abandon(made), ConfigurationError);
}

// C++ makes no read at the primary: the error says what to do instead. A process reads its environment once.
TEST(OnStale, RefusesPrimaryAndSaysWhatHelps) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("ANTIPODE_ON_STALE", "primary", 1);  // NOLINT(concurrency-mt-unsafe): nobody else runs here
        try {
          CurrentSettings();
        } catch (const ConfigurationError& refused) {
          std::fputs(refused.what(), stderr);
          _exit(2);
        }
        _exit(0);
      },
      testing::ExitedWithCode(2), "on_stale must be 'serve' or 'raise' in C.*RouteReads");
}

}  // namespace
}  // namespace antipode
