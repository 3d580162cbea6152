#include "play.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <iostream>
#include <optional>
#include <thread>

#include "antipode/errors.h"
#include "antipode/observer.h"
#include "antipode/shim.h"

namespace antipode::programs {
namespace {

/// Steps of one session.
constexpr int kLength = 25;
/// Within this time a barrier succeeds once the replica shows everything, and a child process ends.
constexpr double kLevelS = 20;
/// How many of the steps are in the middle of signals.
constexpr double kSignalled = 0.1;
constexpr std::chrono::microseconds kBetweenSignals(300);
constexpr std::size_t kNoted = 8;
/// How many in as many steps as all others have weights are forks. Allocators of sanitizers are not held while a
/// process forks: a child may hang in them.
#ifdef ANTIPODE_SANITIZED
constexpr int kForks = 0;
#else
constexpr int kForks = 2;
#endif

void Ask(const char* word) {
  std::cout << word << std::endl;
  std::string answer;
  if (!std::getline(std::cin, answer) || answer != "ok") throw std::runtime_error("nobody holds replication");
}

template <typename Holds>
bool Within(double seconds, const Holds& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  constexpr std::chrono::milliseconds kBetween(2);
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kBetween);
  }
  return true;
}

/// As long as it lives, signals interrupt what this thread waits for.
class Signals {
 public:
  Signals() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    sigaction(SIGUSR1, &action, nullptr);
    sender_ = std::thread([this, thread = pthread_self()] {
      while (!over_) {
        pthread_kill(thread, SIGUSR1);
        std::this_thread::sleep_for(kBetweenSignals);
      }
    });
  }
  ~Signals() {
    over_ = true;
    sender_.join();
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::thread sender_;
};

/// Another request of the same process, which never stops: whoever forks does so in the middle of it.
class Busy {
 public:
  Busy() : thread_([this] { Work(); }) {}
  ~Busy() {
    over_ = true;
    thread_.join();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  void Work() {
    constexpr std::chrono::microseconds kBetween(200);
    const ScopeGuard request;
    for (std::uint64_t number = 1; !over_; ++number) {
      RecordUncommitted(kDatastore, this, true);
      RecordWrite({"others", "log", number});
      Serialize();
      Count("busy", kDatastore);
      RecordUncommitted(kDatastore, this, false);
      std::this_thread::sleep_for(kBetween);
    }
  }

  std::atomic<bool> over_{false};
  std::thread thread_;
};

/// What a child process of the request says that its writes made of the lineage; it must end.
std::string SaidByChild(Bench& bench, const std::string& value) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    std::string text;
    try {
      bench.WriteByShim(value);
      Check();
    } catch (const std::exception&) {
      // The scope says what is known of it.
    }
    text = Current().Serialize();
    const ssize_t written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  int status = -1;
  const bool ended = Within(kLevelS, [&] { return waitpid(child, &status, WNOHANG) == child; });
  if (!ended) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  std::string text;
  std::array<char, 4096> block{};
  for (ssize_t got = 0; (got = read(ends[0], block.data(), block.size())) > 0;) {
    text.append(block.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  if (!ended) throw Fault("broken", "a child process hangs");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw Fault("broken", "a child process ends badly");
  return text;
}

/// What a request has committed, beside what its lineage says.
class Judge {
 public:
  explicit Judge(Bench& bench) : bench_(bench), committed_(bench.Committed()), said_(Current()) {}

  /// Compares the two after a step. Throws Fault.
  void After(const std::string& step, Line& line) {
    const std::string committed = bench_.Committed();
    const Lineage now = Current();
    const bool changed = committed != committed_;
    const bool entered = now.writes() != said_.writes();
    const bool marked = !std::includes(said_.incomplete().begin(), said_.incomplete().end(), now.incomplete().begin(),
                                       now.incomplete().end());
    // A mark of what was not known may become a write, or nothing.
    const bool needless = !changed && (marked || (entered && said_.incomplete().empty()));
    committed_ = committed;
    said_ = now;
    if (changed && !entered && now.incomplete().empty()) {
      throw Fault("lost", step + " committed, and nothing entered the lineage");
    }
    if (needless) ++line.alarms[step];
    if (antipode::Check().ok() && bench_.Shown() != committed) {
      throw Fault("early", "after " + step + " a barrier succeeds, and the replica does not show");
    }
  }

 private:
  Bench& bench_;
  std::string committed_;
  Lineage said_;
};

class Session {
 public:
  Session(Bench& bench, Line& line, std::uint32_t seed) : bench_(bench), line_(line), choose_(seed) {
    for (const Bench::Step& each : bench.steps()) all_ += each.weight;
  }

  void Play(int steps) {
    bench_.trace.clear();
    bench_.Open(choose_);
    const Closes closes{bench_};
    while (steps > 0) {
      const int request = std::min(steps, 1 + static_cast<int>(Below(choose_, 5)));
      Request(request);
      steps -= request;
    }
  }

 private:
  struct Closes {
    Bench& bench;
    ~Closes() { bench.Close(); }
  };
  struct Releases {
    ~Releases() { Ask("release"); }
  };

  /// Some steps in a scope, while the replica shows nothing of them.
  void Request(int steps) {
    bench_.trace.emplace_back("-- request");
    Lineage lineage;
    Ask("hold");
    {
      const Releases releases;
      const ScopeGuard request;
      Judge judge(bench_);
      for (; steps > 0; --steps) {
        ++line_.steps;
        judge.After(Take(), line_);
      }
      bench_.Settle();
      judge.After("settle", line_);
      lineage = Current();
    }
    if (!Within(kLevelS, [&] { return bench_.Shown() == bench_.Committed(); })) {
      throw Fault("broken", "the replica never shows everything");
    }
    WaitsForNothing(lineage);
  }

  /// Does what a step does; its name.
  std::string Take() {
    auto drawn = static_cast<int>(Below(choose_, static_cast<std::size_t>(all_ + kForks)));
    std::optional<Signals> signals;
    if (Chance(choose_, kSignalled)) {
      bench_.trace.emplace_back("-- among signals");
      signals.emplace();
    }
    if (drawn < kForks) return Fork();
    drawn -= kForks;
    for (const Bench::Step& each : bench_.steps()) {
      if (drawn < each.weight) {
        bench_.trace.push_back(each.name);
        Act(each);
        return each.name;
      }
      drawn -= each.weight;
    }
    throw std::logic_error("no step");
  }

  std::string Fork() {
    bench_.trace.emplace_back("fork");
    Transfer(Lineage::Deserialize(SaidByChild(bench_, "child " + std::to_string(line_.steps))));
    return "fork";
  }

  void Act(const Bench::Step& step) {
    try {
      step.act(choose_);
    } catch (const Fault&) {
      throw;
    } catch (const AntipodeError& error) {
      bench_.trace.push_back(std::string("-- ") + error.what());
    } catch (const std::logic_error& error) {
      throw Fault("broken", step.name + ": " + error.what());
    } catch (const std::runtime_error& error) {  // Of the store, or the application.
      bench_.trace.push_back(std::string("-- ") + error.what());
    }
  }

  /// Counts a wait for what the replica shows already.
  void WaitsForNothing(const Lineage& lineage) {
    if (!lineage.incomplete().empty()) return;
    BarrierOptions options;
    options.timeout = Seconds(kLevelS);
    options.lineage = lineage;
    if (!TryBarrier(options)) ++line_.alarms["level"];
  }

  Bench& bench_;
  Line& line_;
  Random choose_;
  int all_ = 0;
};

}  // namespace

Line Play(Bench& bench, int steps, std::uint32_t seed) {
  Line line;
  Ask("release");  // What the bench has made is everywhere.
  const Busy busy;
  for (; line.steps < steps; ++seed) {
    try {
      Session(bench, line, seed).Play(std::min(kLength, steps - line.steps));
    } catch (const Fault& fault) {
      ++line.faults[fault.kind()];
      if (line.notes.size() > kNoted) continue;
      std::string note = "seed " + std::to_string(seed) + ": " + fault.kind() + ": " + fault.what() + "; it did";
      for (const std::string& each : bench.trace) note += "\n      " + each;
      line.notes.push_back(note);
    }
  }
  return line;
}

}  // namespace antipode::programs
