#include "dry_run/running_test.h"

#include <cstdlib>
#include <mutex>

#include "antipode/dry_run.h"
#include "runtime/forks.h"

namespace antipode {
namespace {

/// The test of pytest that started this process, without its phase.
std::optional<std::string> StartedBy() {
  const char* given = std::getenv("PYTEST_CURRENT_TEST");
  if (given == nullptr) return std::nullopt;
  const std::string test = given;
  const std::string named = test.substr(0, test.rfind(" ("));
  return named.empty() ? std::nullopt : std::optional(named);
}

struct Running {
  std::mutex lock;
  std::optional<std::string> test = StartedBy();
};

/// Never destroyed: threads may go on while the process ends.
Running& TheRunning() {
  static auto* running = [] {
    auto* made = new Running;
    HoldWhileForking(ForkRank::kRunningTest, made->lock);
    return made;
  }();
  return *running;
}

}  // namespace

void SetRunningTest(const std::optional<std::string>& test) {
  Running& running = TheRunning();
  const std::lock_guard guard(running.lock);
  running.test = test && test->empty() ? std::nullopt : test;
}

std::optional<std::string> dry_run::RunningTest() {
  Running& running = TheRunning();
  const std::lock_guard guard(running.lock);
  return running.test;
}

}  // namespace antipode
