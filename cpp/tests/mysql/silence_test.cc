// Servers that take connections and answer nothing.
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "antipode/mysql.h"
#include "antipode/scope.h"
#include "silent_server.h"

namespace antipode::mysql {
namespace {

constexpr double kTimeoutS = 0.2;
constexpr std::chrono::seconds kPatience(10);

class Silence : public ::testing::Test {
 protected:
  Silence() {
    Options options{"app", "secret", "blog"};
    options.timeout = std::chrono::duration<double>(kTimeoutS);
    shim_ = Shim::Open("posts", "127.0.0.1", server_.port(), options);
  }
  ~Silence() override { shim_->Close(); }

  /// Whether work ended in good time, by the error of a type.
  template <typename Failure, typename Work>
  static void ExpectSoon(Work work) {
    auto done = std::async(std::launch::async, [work] { EXPECT_THROW(work(), Failure); });
    ASSERT_EQ(done.wait_for(kPatience), std::future_status::ready);
  }

  SilentServer server_;
  std::shared_ptr<Shim> shim_;
};

TEST_F(Silence, EndsAWriteThatWasNeverSentWithoutDoubt) {
  const auto scope = std::make_shared<Scope>();
  ExpectSoon<Error>([&] {
    const ScopeGuard guard(scope);
    shim_->Write("1", "hello");
  });
  EXPECT_TRUE(scope->lineage().incomplete().empty());
}

TEST_F(Silence, EndsARead) {
  ExpectSoon<Error>([&] { shim_->Read("1"); });
}

TEST_F(Silence, EndsWhatBarriersAsk) {
  ExpectSoon<Unreachable>([&] { shim_->OpenEndpoint(kTimeoutS); });
  ExpectSoon<Unreachable>([&] { shim_->Fence(kTimeoutS); });
  const Promise promise{"posts", std::string(32, 'a'), 1};
  ExpectSoon<Unreachable>([&] { shim_->AbandonPromise(promise, kTimeoutS); });
}

}  // namespace
}  // namespace antipode::mysql
