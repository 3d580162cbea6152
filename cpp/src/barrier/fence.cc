#include "barrier/fence.h"

#include <algorithm>
#include <system_error>

#include "runtime/observers.h"
#include "runtime/thrown.h"

namespace antipode {

void Fence::Wait(double timeout_s) {
  std::unique_lock guard(lock_);
  changed_.wait_for(guard, std::chrono::duration<double>(timeout_s), [this] { return done_; });
}

bool Fence::Done() {
  const std::lock_guard guard(lock_);
  return done_;
}

void Fence::Cancel() {
  std::function<void()> dropped;  // Destroyed without the lock: it may hold who waits, who holds this.
  const std::lock_guard guard(lock_);
  cancelled_ = true;
  dropped.swap(callback_);
}

std::set<WriteId> Fence::Result() {
  const std::lock_guard guard(lock_);
  return writes_;
}

void Fence::OnDone(std::function<void()> callback) {
  {
    const std::lock_guard guard(lock_);
    if (!done_) {
      callback_ = std::move(callback);
      return;
    }
  }
  callback();
}

bool Fence::Begin() {
  const std::lock_guard guard(lock_);
  return !cancelled_;
}

void Fence::Set(std::set<WriteId> writes) {
  std::function<void()> callback;
  {
    const std::lock_guard guard(lock_);
    writes_ = std::move(writes);
    done_ = true;
    callback.swap(callback_);
    changed_.notify_all();
  }
  if (callback) callback();
}

std::set<WriteId> PositionsOf(Fences::const_iterator first, Fences::const_iterator last) {
  std::set<WriteId> all;
  for (; first != last; ++first) {
    const auto writes = first->second->Result();
    if (writes.empty()) return {};
    all.insert(writes.begin(), writes.end());
  }
  return all;
}

Fencer::Fencer(Store& store) : store_(store.weak_from_this()), datastore_(store.datastore()), clock_(store.clock()) {}

std::shared_ptr<Fence> Fencer::Ask(double timeout_s) {
  auto fence = std::make_shared<Fence>();
  const std::lock_guard guard(lock_);
  wanted_.emplace_back(fence, timeout_s);
  if (running_) return fence;
  try {
    clock_.Spawn(shared_from_this());
    running_ = true;
  } catch (const std::system_error&) {
    wanted_.clear();
    fence->Set({});
  }
  return fence;
}

std::optional<double> Fencer::Step() {
  if (!Begin()) return std::nullopt;
  End();
  return 0.0;
}

bool Fencer::Begin() {
  const std::lock_guard guard(lock_);
  asked_.clear();
  for (const auto& each : wanted_) {
    if (each.first->Begin()) asked_.push_back(each);
  }
  wanted_.clear();
  if (asked_.empty()) running_ = false;
  return !asked_.empty();
}

void Fencer::End() {
  decltype(asked_) asked;
  asked.swap(asked_);
  double timeout_s = 0;
  for (const auto& each : asked) timeout_s = std::max(timeout_s, each.second);
  std::set<WriteId> writes;
  try {
    if (const auto store = store_.lock()) writes = store->Fence(timeout_s);
  } catch (...) {
    WarnOnce("fence_failed", datastore_, "", "no fence from the primary of '" + datastore_ + "': " + Thrown());
  }
  for (const auto& [fence, s] : asked) fence->Set(writes);
}

}  // namespace antipode
