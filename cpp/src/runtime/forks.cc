#include "runtime/forks.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace antipode {
namespace {

constexpr std::size_t kRanks = static_cast<std::size_t>(ForkRank::kRunningTest) + 1;

struct Held {
  std::mutex* lock;
  void (*renew)();
};

struct OwnLocks {
  void (*hold)();
  void (*release)();
};

struct Forks {
  std::atomic<const OwnLocks*> own{nullptr};
  std::array<std::atomic<const Held*>, kRanks> known{};
};

/// By the thread that forks.
thread_local std::array<const Held*, kRanks> held{};

Forks& TheForks() {
  static auto* forks = new Forks;
  return *forks;
}

void Prepare() {
  Forks& forks = TheForks();
  if (const OwnLocks* own = forks.own) own->hold();
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    held[rank] = forks.known[rank].load();
    if (held[rank] != nullptr) held[rank]->lock->lock();
  }
}

void Release() {
  for (std::size_t rank = kRanks; rank-- > 0;) {
    if (held[rank] != nullptr) held[rank]->lock->unlock();
  }
  if (const OwnLocks* own = TheForks().own) own->release();
}

void Renew() {
  Release();
  for (const Held* each : held) {
    if (each != nullptr && each->renew != nullptr) each->renew();
  }
}

void Begin() {
  static const int registered = pthread_atfork(Prepare, Release, Renew);
  static_cast<void>(registered);
}

}  // namespace

void HoldOwnWhileForking(void (*hold)(), void (*release)()) {
  Begin();
  TheForks().own = new OwnLocks{hold, release};
}

void HoldWhileForking(ForkRank rank, std::mutex& lock, void (*renew)()) {
  Begin();
  TheForks().known[static_cast<std::size_t>(rank)] = new Held{&lock, renew};
}

}  // namespace antipode
