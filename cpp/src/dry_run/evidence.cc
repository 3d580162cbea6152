#include "dry_run/evidence.h"

#include <algorithm>
#include <utility>

#include "runtime/observers.h"
#include "runtime/per_thread.h"

namespace antipode::dry_run {
namespace {

/// Reads that are checked at a time.
constexpr std::size_t kMost = 8;
/// Reads of which it is not known yet that they are over.
constexpr std::size_t kMostOpen = 64;
/// Reads of one finding that are all checked; of more, one in so long.
constexpr int kEager = 100;
constexpr std::chrono::milliseconds kEvery{100};
constexpr std::size_t kMostFindings = 10'000;

/// What lives as long as a thread.
struct Alive {
  std::shared_ptr<const char> token = std::make_shared<const char>('\0');
};

const std::shared_ptr<const char>& ThisThread() { return PerThread<Alive>::Mine().token; }

void Dropped(const std::string& datastore) { Count("dry_run_evidence_dropped", datastore); }

}  // namespace

bool Evidence::Wants(const Finding& finding) {
  {
    const std::lock_guard guard(lock_);
    const auto now = std::chrono::steady_clock::now();
    if (looked_.size() >= kMostFindings && looked_.count(finding) == 0) looked_.clear();
    Looked& looked = looked_[finding];
    if (looked.reads < kEager || now - looked.last >= kEvery) {
      ++looked.reads;
      looked.last = now;
      return true;
    }
  }
  Dropped(std::get<0>(finding));
  return false;
}

void Evidence::Seek(const std::shared_ptr<StalenessCheck>& check) {
  {
    const std::lock_guard guard(lock_);
    if (open_.size() < kMostOpen && !closed_) {
      open_.push_back({ThisThread(), check});
      any_open_ = true;
      return;
    }
  }
  Dropped(check->datastore());
}

void Evidence::Over() {
  if (!any_open_) return;
  Checks begun;
  Checks dropped;
  {
    const std::lock_guard guard(lock_);
    std::vector<Open> left;
    for (Open& each : open_) {
      const auto reader = each.reader.lock();
      if (reader && reader != ThisThread()) {
        if (each.check->Late()) {
          dropped.push_back(std::move(each.check));
        } else {
          left.push_back(std::move(each));
        }
      } else if (running_.size() < kMost) {
        running_.push_back(each.check);
        begun.push_back(std::move(each.check));
      } else {
        dropped.push_back(std::move(each.check));
      }
    }
    open_ = std::move(left);
    any_open_ = !open_.empty();
  }
  for (const auto& each : begun) each->Begin();
  for (const auto& each : dropped) Dropped(each->datastore());
}

void Evidence::Ended(const StalenessCheck& check) {
  std::shared_ptr<StalenessCheck> ended;  // Destroyed after the lock is given back.
  const std::lock_guard guard(lock_);
  const auto found =
      std::find_if(running_.begin(), running_.end(), [&](const auto& each) { return each.get() == &check; });
  if (found == running_.end()) return;
  ended = std::move(*found);
  running_.erase(found);
}

void Evidence::Settle(double timeout_s) {
  Over();
  Checks begun;
  {
    const std::lock_guard guard(lock_);
    begun = running_;
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  for (const auto& each : begun) {
    const std::chrono::duration<double> left = until - std::chrono::steady_clock::now();
    each->AwaitLook(std::max(left.count(), 0.0));
  }
}

void Evidence::Close() {
  Checks begun;
  {
    const std::lock_guard guard(lock_);
    closed_ = true;
    open_.clear();
    any_open_ = false;
    begun = running_;
  }
  for (const auto& each : begun) each->Stop();
}

}  // namespace antipode::dry_run
