// What the library does as its process forks.
#pragma once

#include <mutex>

namespace antipode {

/// The locks that the process has once, the outer ones first: whoever holds one takes none before it. They are held
/// while the process forks, so that no thread which is not in the child has one of them there.
enum class ForkRank { kStores, kWatchers, kDryRun, kSettings, kPeers, kObservers, kPlaces, kSymbols };

/// Holds a lock while the process forks; once it is free in the child, `renew`, if any, is called there. On the only
/// thread of the child, and once for each rank, when the lock is made.
void HoldWhileForking(ForkRank rank, std::mutex& lock, void (*renew)() = nullptr);

}  // namespace antipode
