#include "runtime/observers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <set>
#include <tuple>

#include "runtime/dry_run.h"
#include "runtime/forks.h"

namespace antipode {
namespace {

constexpr std::size_t kMostLogged = 10'000;
/// Names of datastores come from outside as well, in lineages that anybody may forge.
constexpr std::size_t kMostCounts = 2'000;
/// How seldom the same is said of a datastore.
constexpr std::chrono::minutes kSeldom{1};
constexpr std::string_view kOther = "_OTHER";
/// Counts that a dry run makes a lint of.
constexpr std::array<std::string_view, 5> kLints{"companion_absent", "foreign", "unreadable", "unscoped_read",
                                                 "unscoped_write"};

struct State {
  std::mutex lock;
  std::map<std::pair<std::string, std::string>, std::uint64_t> counts;
  std::set<std::tuple<std::string, std::string, std::string>> warned;
  /// When something was said last, by metric and datastore.
  std::map<std::pair<std::string, std::string>, std::chrono::steady_clock::time_point> said;
  std::shared_ptr<Observer> observer;
};

/// Never destroyed: threads may count while the process ends.
State& TheState() {
  static auto* state = [] {
    auto* made = new State;
    HoldWhileForking(ForkRank::kObservers, made->lock);
    return made;
  }();
  return *state;
}

void Say(const std::shared_ptr<Observer>& observer, const std::string& message) {
  if (observer) {
    observer->Warned(message);
  } else {
    std::fputs(("antipode: " + message + "\n").c_str(), stderr);
  }
}

}  // namespace

Observer::~Observer() = default;
void Observer::Counted(std::string_view, std::string_view) noexcept {}
void Observer::ServedStale(std::string_view, std::string_view) noexcept {}
void Observer::Warned(std::string_view) noexcept {}

void SetObserver(std::shared_ptr<Observer> observer) {
  State& state = TheState();
  const std::lock_guard lock(state.lock);
  state.observer.swap(observer);
}

std::map<std::pair<std::string, std::string>, std::uint64_t> Metrics() {
  State& state = TheState();
  const std::lock_guard lock(state.lock);
  return state.counts;
}

void Count(std::string_view metric, std::string_view subject) {
  State& state = TheState();
  std::shared_ptr<Observer> observer;
  {
    const std::lock_guard lock(state.lock);
    std::pair<std::string, std::string> name{metric, subject};
    if (state.counts.size() >= kMostCounts && state.counts.count(name) == 0) name.second = kOther;
    ++state.counts[name];
    observer = state.observer;
  }
  if (observer) observer->Counted(metric, subject);
  if (std::find(kLints.begin(), kLints.end(), metric) == kLints.end()) return;
  if (const auto dry_run = DryRunNow()) dry_run->Counted(metric, subject);
}

void WarnOnce(std::string_view metric, std::string_view subject, std::string_view site, const std::string& message) {
  State& state = TheState();
  std::shared_ptr<Observer> observer;
  {
    const std::lock_guard lock(state.lock);
    if (state.warned.size() >= kMostLogged || !state.warned.emplace(metric, subject, site).second) return;
    observer = state.observer;
  }
  Say(observer, message);
}

void WarnSeldom(std::string_view metric, const std::string& datastore, const std::string& message) {
  State& state = TheState();
  std::shared_ptr<Observer> observer;
  {
    const std::lock_guard lock(state.lock);
    const auto now = std::chrono::steady_clock::now();
    std::pair about{std::string(metric), datastore};
    const auto found = state.said.find(about);
    if (found == state.said.end() ? state.said.size() >= kMostLogged : now - found->second < kSeldom) return;
    state.said[std::move(about)] = now;
    observer = state.observer;
  }
  Say(observer, message);
}

void CountServed(const std::string& datastore, const AntipodeError& error) {
  Count("served_stale", datastore);
  State& state = TheState();
  std::shared_ptr<Observer> observer;
  {
    const std::lock_guard lock(state.lock);
    observer = state.observer;
  }
  if (observer) observer->ServedStale(datastore, error.code());
  WarnSeldom("served_stale", datastore,
             "a read of '" + datastore + "' was answered although its request depends on more: " + error.what());
}

}  // namespace antipode
