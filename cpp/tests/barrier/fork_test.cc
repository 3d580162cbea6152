// Processes that fork while the library is at work: a child waits anew, and uses nothing of its parent's.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <thread>

#include "antipode/barrier.h"
#include "antipode/observer.h"
#include "antipode/shim.h"
#include "barrier/watcher.h"
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
  while (store_->looks == 0) std::this_thread::yield();
  EXPECT_TRUE(WellInChild([&] {
    if (!WatchersAtWork().empty()) return false;
    auto also = BarrierAsync(Options());
    while (store_->looks == 0) std::this_thread::yield();
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

}  // namespace
}  // namespace antipode
