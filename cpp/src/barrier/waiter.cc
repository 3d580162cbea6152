#include "barrier/waiter.h"

#include <algorithm>
#include <vector>

#include "barrier/registry.h"
#include "runtime/thrown.h"

namespace antipode {
namespace {

std::vector<std::string> NamesOf(const Pending& pending) {
  std::vector<std::string> names;
  for (const auto& [name, asked] : pending) names.push_back(name);
  return names;
}

}  // namespace

Waiter::Waiter(Wait& wait, std::function<void()> notify, const Clock& clock, Purpose purpose)
    : wait_(wait), notify_(std::move(notify)), clock_(clock), purpose_(purpose) {
  for (const std::string& name : NamesOf(wait.pending())) {
    if (const auto store = registry::Looking(name)) {
      watchers_[name] = store->watcher();
    } else {
      wait.Failed(name, kClosed, wait.started_s());
    }
  }
}

double Waiter::LeftS() const { return std::max(wait_.deadline_s() - clock_.Now(), 0.0); }

bool Waiter::Finished() {
  const std::lock_guard guard(lock_);
  return IsFinished();
}

bool Waiter::IsFinished() const {
  const auto& pending = wait_.pending();
  if (purpose_ != Purpose::kCheck) {
    if (wait_.Finished()) return true;
    return purpose_ == Purpose::kRoute && std::any_of(pending.begin(), pending.end(), [this](const auto& each) {
             return watchers_.at(each.first)->Absent();
           });
  }
  // Even if it cannot succeed any more: the caller asks what is visible.
  return std::all_of(pending.begin(), pending.end(),
                     [this](const auto& each) { return looked_.count(each.first) != 0; });
}

void Waiter::Recall() {
  const std::lock_guard guard(lock_);
  for (const auto& [name, watcher] : watchers_) {
    if (const std::string away = watcher->Away(); !away.empty()) wait_.Unreached(name, away, clock_.Now());
  }
  for (const auto& [name, watcher] : watchers_) RecallOf(name);
}

void Waiter::RecallOf(const std::string& datastore) {
  const auto asked = wait_.pending().find(datastore);
  if (asked == wait_.pending().end()) return;
  if (const auto known = watchers_.at(datastore)->Recall(asked->second)) wait_.Record(datastore, *known, clock_.Now());
}

bool Waiter::LookHere() {
  std::string datastore;
  std::set<Dependency> asked;
  {
    const std::lock_guard guard(lock_);
    if (wait_.pending().size() != 1) return false;
    std::tie(datastore, asked) = *wait_.pending().begin();
  }
  try {
    const auto observation = watchers_.at(datastore)->TryLook(asked, std::min(LeftS(), kLookS));
    if (!observation) return false;
    Take(datastore, *observation);
    is_checked_ = true;
  } catch (const Unreachable& error) {
    Unreached(datastore, error.what());
  } catch (...) {
    Thrown();
    return false;  // The watcher checks again, and knows what to retry.
  }
  return true;
}

void Waiter::Subscribe() {
  std::vector<std::string> names;
  {
    const std::lock_guard guard(lock_);
    names = NamesOf(wait_.pending());
  }
  for (const std::string& name : names) watchers_.at(name)->Subscribe(shared_from_this(), is_checked_);
}

void Waiter::Cancel() {
  {
    const std::lock_guard guard(lock_);
    over_ = true;
  }
  for (const auto& [name, watcher] : watchers_) watcher->Unsubscribe(shared_from_this());
}

std::set<Dependency> Waiter::Wanted(const std::string& datastore) {
  const std::lock_guard guard(lock_);
  if (over_ || IsFinished() || (purpose_ == Purpose::kCheck && looked_.count(datastore) != 0)) return {};
  const auto found = wait_.pending().find(datastore);
  return found == wait_.pending().end() ? std::set<Dependency>() : found->second;
}

void Waiter::WaitedOn(double at_s) {
  const std::lock_guard guard(lock_);
  if (!over_) wait_.WaitOn(at_s);
}

void Waiter::Take(const std::string& datastore, const Observation& observation) {
  Update(datastore, [&](double now_s) { wait_.Record(datastore, observation, now_s); });
}

void Waiter::Unreached(const std::string& datastore, const std::string& cause) {
  Update(datastore, [&](double now_s) { wait_.Unreached(datastore, cause, now_s); });
}

void Waiter::Failed(const std::string& datastore, const std::string& cause) {
  Update(datastore, [&](double now_s) { wait_.Failed(datastore, cause, now_s); });
}

void Waiter::Update(const std::string& datastore, const std::function<void(double)>& record) {
  std::vector<std::string> doubted;
  {
    const std::lock_guard guard(lock_);
    if (over_) return;
    const auto before = NamesOf(wait_.pending());
    record(clock_.Now());
    looked_.insert(datastore);
    const auto is_pending = [this](const std::string& name) { return wait_.pending().count(name) != 0; };
    for (const std::string& name : NamesOf(wait_.pending())) {
      if (std::count(before.begin(), before.end(), name) == 0) doubted.push_back(name);
    }
    for (const std::string& name : doubted) looked_.erase(name);
    for (const std::string& name : doubted) RecallOf(name);
    doubted.erase(std::remove_if(doubted.begin(), doubted.end(), [&](const auto& name) { return !is_pending(name); }),
                  doubted.end());
    if (IsFinished()) {
      over_ = true;
      notify_();  // Under the lock: what it notifies may be gone once `Cancel` has returned.
      return;
    }
  }
  // Their watchers believe that nobody waits there any more.
  for (const std::string& name : doubted) watchers_.at(name)->Subscribe(shared_from_this());
}

}  // namespace antipode
