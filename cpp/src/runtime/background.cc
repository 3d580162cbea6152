#include "runtime/background.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "runtime/clock.h"
#include "runtime/forks.h"
#include "runtime/observers.h"
#include "runtime/settings.h"
#include "runtime/thrown.h"

namespace antipode::background {
namespace {

using Task = std::function<void()>;

/// After which a thread that has nothing to do ends.
constexpr auto kIdle = std::chrono::seconds(10);
/// The longest that the timekeeper waits without looking at the clock.
constexpr double kLongestS = 3'600;
/// Threads that call back: applications may block them.
constexpr std::size_t kCallers = 4;

std::mutex lock;

/// Threads that take tasks of one kind from a queue. Under the lock.
class Crew {
 public:
  /// Starts a thread where all are busy and there are fewer than so many. Where none can be started, a task that
  /// `waits` is left to those that there are.
  void Add(Task task, std::size_t most, bool waits) {
    tasks_.push_back(std::move(task));
    if (idle_ >= tasks_.size()) {
      changed_.notify_one();
      return;
    }
    if (size_ >= most) return;
    try {
      std::thread([this] { Work(); }).detach();
      ++size_;
    } catch (const std::system_error&) {
      if (waits && size_ > 0) return;
      tasks_.pop_back();
      throw;
    }
  }
  /// Those that are at work, or about to be.
  [[nodiscard]] std::size_t busy() const { return size_ - idle_ + std::min(tasks_.size(), idle_); }

 private:
  void Work() {
    std::unique_lock guard(lock);
    while (const auto task = Next(guard)) {
      guard.unlock();
      (*task)();
      guard.lock();
    }
    --size_;
  }

  std::optional<Task> Next(std::unique_lock<std::mutex>& guard) {
    ++idle_;
    const bool found = changed_.wait_for(guard, kIdle, [this] { return !tasks_.empty(); });
    --idle_;
    if (!found) return std::nullopt;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  std::deque<Task> tasks_;
  std::condition_variable changed_;
  std::size_t size_ = 0;
  std::size_t idle_ = 0;
};

class Time final : public Later {
 public:
  /// Starts the thread where there is none. Under the lock.
  void Begin() {
    if (kept_) return;
    std::thread([this] { Keep(); }).detach();
    kept_ = true;
  }

  Moment At(double when_s, Task step) override {
    const std::lock_guard guard(lock);
    Begin();
    const Moment moment{when_s, number_++};
    const auto added = steps_.emplace(moment, std::move(step)).first;
    if (added == steps_.begin()) changed_.notify_one();
    return moment;
  }

  void Forget(const Moment& moment) override {
    std::map<Moment, Task>::node_type forgotten;  // Destroyed without the lock.
    const std::lock_guard guard(lock);
    forgotten = steps_.extract(moment);
  }

 private:
  void Keep() {
    std::unique_lock guard(lock);
    while (Awaits(guard)) {
      auto step = steps_.extract(steps_.begin());
      guard.unlock();
      try {
        step.mapped()();
      } catch (...) {
        WarnOnce("background", "", "", "a step of the library failed: " + Thrown());
      }
      step = {};
      guard.lock();
    }
    kept_ = false;
  }

  /// Waits until a step is due; false where there is none for long.
  bool Awaits(std::unique_lock<std::mutex>& guard) {
    while (true) {
      if (steps_.empty() && !changed_.wait_for(guard, kIdle, [this] { return !steps_.empty(); })) return false;
      if (steps_.empty()) continue;
      const double left_s = steps_.begin()->first.first - SystemClock().Now();
      if (left_s <= 0) return true;
      changed_.wait_for(guard, std::chrono::duration<double>(std::min(left_s, kLongestS)));
    }
  }

  std::map<Moment, Task> steps_;
  std::condition_variable changed_;
  std::uint64_t number_ = 0;
  bool kept_ = false;
};

struct Threads {
  Time time;
  Crew watchers;
  Crew callers;
};

/// Never destroyed: threads may ask while the process ends, and a child leaves alone what its parent's hold. Asked for
/// before the lock is taken.
Threads*& TheThreads() {
  static Threads* threads = [] {
    HoldWhileForking(ForkRank::kBackground, lock, [] { TheThreads() = new Threads; });
    return new Threads;
  }();
  return threads;
}

}  // namespace

Later& Timekeeper() {
  Threads*& threads = TheThreads();
  const std::lock_guard guard(lock);
  threads->time.Begin();
  return threads->time;
}

void Spawn(const std::shared_ptr<Stepper>& stepper) {
  const std::size_t most = SettingsInForce()->max_threads;
  Threads*& threads = TheThreads();
  const std::lock_guard guard(lock);
  if (threads->watchers.busy() >= most) {
    throw std::system_error(
        std::make_error_code(std::errc::resource_unavailable_try_again),
        std::to_string(most) + " threads of the library check servers already, and max_threads allows no more");
  }
  threads->watchers.Add(
      [stepper] {
        while (const auto delay_s = stepper->Step()) stepper->Pause(*delay_s);
      },
      most, false);
}

void Call(Task task) {
  Threads*& threads = TheThreads();
  const std::lock_guard guard(lock);
  threads->callers.Add(std::move(task), kCallers, true);
}

}  // namespace antipode::background
