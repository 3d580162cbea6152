// Processes that fork while the library is at work: a child waits anew, and uses nothing of its parent's.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <thread>

#include "antipode/barrier.h"
#include "antipode/observer.h"
#include "antipode/scope.h"
#include "antipode/shim.h"
#include "barrier/watcher.h"
#include "eventually.h"
#include "settings_guard.h"

namespace antipode {
namespace {

/// A store in memory, whose connections are of the process that made them.
class Forking final : public Store {
 public:
  explicit Forking(const std::string& datastore) : Store(datastore) {}
  std::atomic<bool> reached{false};
  std::atomic<int> looks{0};

  std::unique_ptr<Endpoint> OpenEndpoint(double) override { return std::make_unique<Connection>(*this); }

 private:
  class Connection final : public Endpoint {
   public:
    explicit Connection(Forking& store) : store_(store) {}
    Observation Observe(const std::set<WriteId>& writes, double) override {
      if (getpid() != made_) throw std::logic_error("a connection of the parent is used");
      ++store_.looks;
      Observation shown;
      shown.server = "server";
      for (const WriteId& each : writes) {
        shown.statuses[each] = store_.reached ? Status::kVisible : Status::kNotYet;
      }
      return shown;
    }

   private:
    Forking& store_;
    pid_t made_ = getpid();
  };
};

/// Whether work in a child process came out well, and ended.
bool WellInChild(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  constexpr std::chrono::seconds kPatience(30);
  constexpr std::chrono::milliseconds kBetween(1);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  int status = -1;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, WNOHANG)) == 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kBetween);
  }
  if (ended == child) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return false;
}

class Fork : public testing::Test {
 protected:
  Fork() : store_(std::make_shared<Forking>("posts")) { Register(store_); }
  ~Fork() override { store_->Close(); }

  static BarrierOptions Options(std::uint64_t version = 5) {
    BarrierOptions options;
    options.timeout = Seconds(10);
    options.lineage = Lineage({{"posts", "log", version, 400'000}});
    return options;
  }

  std::shared_ptr<Forking> store_;

 private:
  SettingsGuard settings_;
};

// A barrier of the child is met although the thread that checks for the parent's barriers is not there.
TEST_F(Fork, WhileAWatcherIsAtWorkLetsTheChildWait) {
  auto waiting = BarrierAsync(Options());
  const auto looked = [&] { return store_->looks > 0; };
  ASSERT_TRUE(Eventually(looked));
  EXPECT_TRUE(WellInChild([&] {
    if (!WatchersAtWork().empty()) return false;
    store_->looks = 0;  // Those of the parent.
    auto also = BarrierAsync(Options());
    if (!Eventually(looked)) return false;
    store_->reached = true;
    return static_cast<bool>(TryBarrier(Options())) && also.get().ok();
  }));
  store_->reached = true;
  EXPECT_TRUE(waiting.get().ok()) << "the parent's goes on";
}

// A child opens a connection of its own where its parent keeps one.
TEST_F(Fork, AfterABarrierUsesNoConnectionOfTheParent) {
  store_->reached = true;
  ASSERT_TRUE(TryBarrier(Options()));
  EXPECT_TRUE(WellInChild([&] { return static_cast<bool>(TryBarrier(Options(6))); }));
  EXPECT_TRUE(TryBarrier(Options(7)));
}

// No lock that another thread held as the process forked stays held in the child.
TEST_F(Fork, AmongThreadsAtWorkLeavesNoLockHeld) {
  constexpr int kForks = 100;
  store_->reached = true;
  std::atomic<bool> over{false};
  std::thread busy([&] {
    for (std::uint64_t version = 1; !over; ++version) {
      TryBarrier(Options(version));
      Count("busy", "posts");
      Configure(CurrentSettings());
    }
  });
  int well = 0;
  for (int nth = 0; nth < kForks; ++nth) {
    const bool done = WellInChild([&] {
      Count("busy", "posts");
      return static_cast<bool>(TryBarrier(Options(1)));
    });
    if (!done) break;
    ++well;
  }
  over = true;
  busy.join();
  EXPECT_EQ(well, kForks);
}

// A child sends what its request leaves, although other threads of its parent were in the middle of transactions.
TEST_F(Fork, WhileThreadsHaveTransactionsLeavesNoLockHeld) {
  constexpr int kForks = 100;
  constexpr int kThreads = 3;
  std::atomic<bool> over{false};
  std::array<std::thread, kThreads> busy;
  for (auto& each : busy) {
    each = std::thread([&over] {
      const ScopeGuard request;
      const int who = 0;
      while (!over) {
        RecordUncommitted("posts", &who, true);
        Serialize();
        RecordUncommitted("posts", &who, false);
      }
    });
  }
  const ScopeGuard request;
  const int mine = 0;
  RecordUncommitted("posts", &mine, true);  // So that whoever sends looks for it.
  int well = 0;
  while (well < kForks && WellInChild([] { return !Serialize().empty() && Uncommitted().count("posts") == 1; })) ++well;
  over = true;
  for (auto& each : busy) each.join();
  RecordUncommitted("posts", &mine, false);
  EXPECT_EQ(well, kForks);
}

// A child goes on with the request of its parent, although other threads of that request write meanwhile.
TEST_F(Fork, InARequestThatOtherThreadsShareLeavesNoLockHeld) {
  constexpr int kForks = 100;
  std::atomic<bool> over{false};
  const ScopeGuard request;
  std::array<std::thread, 2> busy;
  for (auto& each : busy) {
    each = std::thread([&over, captured = Capture()] {
      const ScopeGuard guard(captured);
      for (std::uint64_t version = 1; !over; ++version) {
        const OpenBranch branch(captured.scope());
        RecordWrite({"posts", "log", version, 1});
      }
    });
  }
  int well = 0;
  const auto goes_on = [] {
    const OpenBranch branch(CurrentScope());
    RecordWrite({"users", "log", std::uint64_t{1}, 1});
    return Current().writes().size() >= 1 && !Serialize().empty();
  };
  while (well < kForks && WellInChild(goes_on)) ++well;
  over = true;
  for (auto& each : busy) each.join();
  EXPECT_EQ(well, kForks);
}

}  // namespace
}  // namespace antipode
