#include "runtime/forks.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace antipode {
namespace {

constexpr std::size_t kRanks = static_cast<std::size_t>(ForkRank::kSymbols) + 1;

struct Held {
  std::mutex* lock;
  void (*renew)();
};

struct Forks {
  std::array<std::atomic<const Held*>, kRanks> known{};
  std::array<const Held*, kRanks> held{};  ///< By the thread that forks.
};

Forks& TheForks() {
  static auto* forks = new Forks;
  return *forks;
}

void Prepare() {
  Forks& forks = TheForks();
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    forks.held[rank] = forks.known[rank].load();
    if (forks.held[rank] != nullptr) forks.held[rank]->lock->lock();
  }
}

void Release() {
  Forks& forks = TheForks();
  for (std::size_t rank = kRanks; rank-- > 0;) {
    if (forks.held[rank] != nullptr) forks.held[rank]->lock->unlock();
  }
}

void Renew() {
  Release();
  for (const Held* each : TheForks().held) {
    if (each != nullptr && each->renew != nullptr) each->renew();
  }
}

}  // namespace

void HoldWhileForking(ForkRank rank, std::mutex& lock, void (*renew)()) {
  static const int registered = pthread_atfork(Prepare, Release, Renew);
  static_cast<void>(registered);
  TheForks().known[static_cast<std::size_t>(rank)] = new Held{&lock, renew};
}

}  // namespace antipode
