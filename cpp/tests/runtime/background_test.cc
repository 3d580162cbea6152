// The threads of the library: what keeps time, what checks, what calls back.
#include "runtime/background.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "antipode/barrier.h"
#include "antipode/shim.h"
#include "eventually.h"
#include "runtime/clock.h"
#include "settings_guard.h"

namespace antipode {
namespace {

/// A store that shows nothing until it is reached.
class Reached final : public Store {
 public:
  explicit Reached(const std::string& datastore) : Store(datastore) {}

  std::atomic<bool> reached{false};
  std::atomic<int> checks{0};

  std::unique_ptr<Endpoint> OpenEndpoint(double) override { return std::make_unique<Connection>(*this); }

 private:
  class Connection final : public Endpoint {
   public:
    explicit Connection(Reached& store) : store_(store) {}
    Observation Observe(const std::set<WriteId>& writes, double) override {
      ++store_.checks;
      Observation shown;
      shown.server = "server";
      for (const WriteId& each : writes) {
        shown.statuses[each] = store_.reached ? Status::kVisible : Status::kNotYet;
      }
      return shown;
    }

   private:
    Reached& store_;
  };
};

class Background : public testing::Test {
 protected:
  Background() {
    for (const auto& each : {posts_, media_}) Register(each);
  }
  ~Background() override {
    for (const auto& each : {posts_, media_}) each->Close();
  }

  static BarrierOptions Options(const std::string& datastore) {
    BarrierOptions options;
    options.timeout = Seconds(20);
    options.lineage = Lineage({{datastore, "log", std::uint64_t{5}, 400'000}});
    return options;
  }
  static std::size_t Threads() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
  }

  const std::shared_ptr<Reached> posts_ = std::make_shared<Reached>("posts");
  const std::shared_ptr<Reached> media_ = std::make_shared<Reached>("media");

 private:
  SettingsGuard settings_;
};

/// Holds the timekeeper up while it lives.
class HeldUp {
 public:
  HeldUp() {
    background::Timekeeper().At(SystemClock().Now(), [begun = begun_, over = over_.get_future().share()] {
      begun->set_value();
      over.wait();
    });
    begun_->get_future().wait();
  }
  ~HeldUp() { over_.set_value(); }
  HeldUp(const HeldUp&) = delete;
  HeldUp& operator=(const HeldUp&) = delete;

 private:
  std::shared_ptr<std::promise<void>> begun_ = std::make_shared<std::promise<void>>();
  std::promise<void> over_;
};

TEST_F(Background, DoesStepsInTheOrderOfTheirMoments) {
  std::vector<int> done;
  std::promise<void> last;
  {
    const HeldUp now;
    Later& later = background::Timekeeper();
    const double now_s = SystemClock().Now();
    later.At(now_s - 1, [&] { last.set_value(); });
    later.At(now_s - 2, [&] { done.push_back(3); });
    const auto forgotten = later.At(now_s - 3, [&] { done.push_back(0); });
    later.At(now_s - 4, [&] { done.push_back(1); });
    later.At(now_s - 4, [&] { done.push_back(2); });
    later.Forget(forgotten);
    later.Forget(forgotten);
  }
  last.get_future().wait();
  EXPECT_EQ(done, (std::vector<int>{1, 2, 3}));
}

TEST_F(Background, SurvivesAStepThatThrows) {
  std::promise<void> last;
  Later& later = background::Timekeeper();
  later.At(0, [] { throw 42; });
  later.At(1, [&] { last.set_value(); });
  last.get_future().wait();
}

// The timekeeper, and one that checks.
TEST_F(Background, HoldsNoThreadForABarrierThatWaits) {
  constexpr int kWaiting = 1'500;
  ASSERT_FALSE(Check(Options("posts")).ok());
  std::vector<std::future<BarrierResult>> waiting;
  std::atomic<int> called{0};
  const std::size_t before = Threads();
  for (int nth = 0; nth < kWaiting; ++nth) {
    waiting.push_back(BarrierAsync(Options("posts")));
    BarrierCallback([&](const BarrierResult& result) { called += result.ok() ? 1 : 0; }, Options("posts"));
  }
  EXPECT_LE(Threads(), before + 2);
  posts_->reached = true;
  for (auto& each : waiting) EXPECT_TRUE(each.get().ok());
  EXPECT_TRUE(Eventually([&] { return called == kWaiting; }));
  EXPECT_LE(Threads(), before + 6) << "and the few that call back";
}

TEST_F(Background, SaysWhichSettingAllowsNoMoreThreads) {
  Settings settings = CurrentSettings();
  settings.max_threads = 1;
  Configure(settings);
  std::future<BarrierResult> first;
  ASSERT_TRUE(Eventually([&] {  // The one thread may still be at work for another test.
    if (!first.valid() || first.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
      first = BarrierAsync(Options("posts"));
    }
    return posts_->checks > 0;
  }));
  try {
    Barrier(Options("media"));
    ADD_FAILURE() << "there was a thread";
  } catch (const VisibilityCheckError& refused) {
    EXPECT_NE(std::string(refused.what()).find("max_threads allows no more"), std::string::npos) << refused.what();
  }
  posts_->reached = true;
  EXPECT_TRUE(first.get().ok());
  media_->reached = true;
  EXPECT_TRUE(Eventually([&] { return static_cast<bool>(TryBarrier(Options("media"))); })) << "it is free again";
}

// Applications block where they like: nobody else waits for that.
TEST_F(Background, MeetsBarriersWhileCallbacksBlock) {
  constexpr int kBlocked = 40;
  std::promise<void> over;
  const std::shared_future<void> ended = over.get_future().share();
  std::atomic<int> called{0};
  posts_->reached = true;
  for (int nth = 0; nth < kBlocked; ++nth) {
    BarrierCallback(
        [&called, ended](const BarrierResult&) {
          ended.wait();
          ++called;
        },
        Options("posts"));
  }
  auto waiting = BarrierAsync(Options("media"));
  ASSERT_TRUE(Eventually([&] { return media_->checks > 0; }));
  media_->reached = true;
  EXPECT_TRUE(waiting.get().ok());
  EXPECT_EQ(called, 0);
  over.set_value();
  EXPECT_TRUE(Eventually([&] { return called == kBlocked; }));
}

/// A primary that is silent until it is told to answer.
class Silent final : public Store {
 public:
  Silent() : Store("silent") {}

  std::promise<void> answers;
  std::atomic<int> asked{0};

  [[nodiscard]] bool Fences() const override { return true; }
  std::set<WriteId> Fence(double) override {
    if (asked++ == 0) answers.get_future().wait();
    return {};
  }
  std::unique_ptr<Endpoint> OpenEndpoint(double) override { throw Unreachable("it is silent"); }
};

// Also where its primary was never asked, as others were before it.
TEST_F(Background, LetsGoOfWhatACancelledBarrierHeld) {
  const auto silent = std::make_shared<Silent>();
  Register(silent);
  BarrierOptions options;
  options.timeout = Seconds(20);
  options.lineage = Lineage(LineageParts{{}, {{"silent", "unsampled"}}, {}, 0, {}});
  const auto held = std::make_shared<int>();
  auto first = BarrierCallback([held](const BarrierResult&) {}, options);
  ASSERT_TRUE(Eventually([&] { return silent->asked > 0; }));
  auto later = BarrierCallback([held](const BarrierResult&) {}, options);
  EXPECT_TRUE(later.Cancel());
  EXPECT_TRUE(first.Cancel());
  silent->answers.set_value();
  first = later = {};
  EXPECT_TRUE(Eventually([&] { return held.use_count() == 1; }));
  silent->Close();
}

}  // namespace
}  // namespace antipode
