// Requests that are coroutines, several of them on one thread.
#include <gtest/gtest.h>

#include <coroutine>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "antipode/observer.h"
#include "antipode/scope.h"

namespace antipode {
namespace {

/// Coroutines that are ready to go on, in their order.
std::deque<std::coroutine_handle<>>& Ready() {
  static std::deque<std::coroutine_handle<>> ready;
  return ready;
}

struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

/// Lets the others go on first.
struct Yield {
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<> handle) { Ready().push_back(handle); }
  void await_resume() {}
};

void RunAll() {
  while (!Ready().empty()) {
    const auto next = Ready().front();
    Ready().pop_front();
    next.resume();
  }
}

constexpr std::uint64_t kSteps = 3;

void Write(const std::string& name, std::uint64_t step) { RecordWrite({name, "log", step}); }

/// A request in the documented way: a guard after each resumption, none over a co_await.
Task Request(std::string name, std::shared_ptr<Scope> scope) {
  for (std::uint64_t step = 1; step <= kSteps; ++step) {
    {
      const ScopeGuard request(scope);
      Write(name, step);
    }
    co_await Yield{};
  }
  scope->End();
}

/// A part of the request that calls it.
Task Part(std::string name) {
  const Captured request = Capture();
  co_await Yield{};
  const ScopeGuard guard(request);
  Write(name, 1);
}

Task HoldingItsGuard(std::string name, std::uint64_t steps, std::shared_ptr<Scope> scope) {
  const ScopeGuard request(scope);
  for (std::uint64_t step = 1; step <= steps; ++step) {
    Write(name, step);
    co_await Yield{};
  }
}

std::uint64_t OutOfOrder() {
  const auto metrics = Metrics();
  const auto found = metrics.find({"scope_out_of_order", ""});
  return found == metrics.end() ? 0 : found->second;
}

// Requests that interleave on one thread have their own writes, and no others.
TEST(Coroutine, KeepsItsScopeOverEachResumption) {
  const std::uint64_t before = OutOfOrder();
  const auto a = std::make_shared<Scope>();
  const auto b = std::make_shared<Scope>();
  Request("a", a);
  Request("b", b);
  RunAll();
  EXPECT_EQ(a->lineage().Only({"b"}).writes().size(), 0U);
  EXPECT_EQ(a->lineage().Only({"a"}), Lineage({{"a", "log", kSteps, a->lineage().writes()[0].written_hour}}));
  EXPECT_EQ(b->lineage().Only({"a"}).writes().size(), 0U);
  EXPECT_TRUE(a->lineage().incomplete().empty());
  EXPECT_EQ(CurrentScope(), nullptr);
  EXPECT_EQ(OutOfOrder(), before);
}

// A coroutine that goes on on another thread writes to the scope that it captured.
TEST(Coroutine, GoesOnInWhatItCapturedOnAnyThread) {
  const auto scope = std::make_shared<Scope>();
  {
    const ScopeGuard request(scope);
    Part("a");
  }
  std::thread(RunAll).join();
  EXPECT_EQ(scope->lineage().writes().size(), 1U);
}

// A guard that a coroutine holds over a co_await while another one begins marks its scope and is counted.
TEST(Coroutine, ThatHoldsAGuardOverAnAwaitMarksItsScope) {
  const std::uint64_t before = OutOfOrder();
  const auto a = std::make_shared<Scope>();
  const auto b = std::make_shared<Scope>();
  HoldingItsGuard("a", 2, a);
  HoldingItsGuard("b", 3, b);
  RunAll();
  EXPECT_EQ(a->lineage().incomplete(), std::set<Incomplete>({{"", "out_of_order"}})) << "b has what a wrote";
  EXPECT_EQ(OutOfOrder(), before + 1);
  EXPECT_EQ(CurrentScope(), nullptr);
}

// A guard that ends on another thread marks its scope.
TEST(Coroutine, ThatEndsItsGuardOnAnotherThreadMarksItsScope) {
  const auto scope = std::make_shared<Scope>();
  HoldingItsGuard("a", 1, scope);
  std::thread(RunAll).join();
  EXPECT_EQ(scope->lineage().incomplete(), std::set<Incomplete>({{"", "out_of_order"}}));
  EXPECT_EQ(CurrentScope(), nullptr);
}

}  // namespace
}  // namespace antipode
