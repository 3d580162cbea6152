#include "runtime/dry_run.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <tuple>

#include "antipode/dry_run.h"
#include "antipode/errors.h"
#include "runtime/forks.h"
#include "runtime/settings.h"

namespace antipode {
namespace {

/// The settings by which one dry run differs from another.
using Chosen = std::tuple<std::optional<std::string>, std::optional<std::string>, std::optional<std::set<std::string>>>;

struct State {
  std::mutex following;  ///< Held while one is begun or ended.
  std::optional<Chosen> begun;
  std::mutex lock;  ///< Of the observer.
  std::shared_ptr<DryRunObserver> observer;
  std::atomic<bool> observed{false};
  std::atomic<bool> followed{false};
};

void Renew();

/// Never destroyed: threads may go on while the process ends.
State& TheState() {
  static auto* state = [] {
    auto* made = new State;
    HoldWhileForking(ForkRank::kDryRuns, made->following);
    HoldWhileForking(ForkRank::kDryRun, made->lock, Renew);
    return made;
  }();
  return *state;
}

/// A thread that is not in the child may have had a lock of the parent's: a new one, and that one is left as it is.
void Renew() {
  auto& observer = TheState().observer;
  if (observer) ::new (static_cast<void*>(&observer)) std::shared_ptr(MakeDryRun(*SettingsInForce()));
}

}  // namespace

DryRunObserver::~DryRunObserver() = default;

std::shared_ptr<DryRunObserver> DryRunNow() {
  State& state = TheState();
  if (!state.followed) {
    try {
      SettingsInForce();                   // The first call reads them, and follows.
    } catch (const ConfigurationError&) {  // Whoever asks for a setting learns it.
      return nullptr;
    }
  }
  if (!state.observed) return nullptr;
  const std::lock_guard guard(state.lock);
  return state.observer;
}

void SettleDryRun(std::chrono::duration<double> timeout) {
  if (const auto observer = DryRunNow()) observer->Settle(timeout.count());
}

void FollowDryRun() {
  State& state = TheState();
  const std::lock_guard following(state.following);
  const auto settings = SettingsInForce();
  state.followed = true;
  std::optional<Chosen> chosen;
  if (settings->mode == Mode::kDryRun && !Disabled()) {
    chosen = {settings->dry_run_dir, settings->region, settings->app_packages};
  }
  if (chosen == state.begun) return;
  auto observer = chosen ? MakeDryRun(*settings) : nullptr;
  state.begun = chosen;
  {
    const std::lock_guard guard(state.lock);
    state.observer.swap(observer);
    state.observed = state.observer != nullptr;
  }
  if (observer) observer->Close();
}

}  // namespace antipode
