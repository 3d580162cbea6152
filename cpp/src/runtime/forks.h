// What the library does as its process forks.
#pragma once

#include <mutex>

namespace antipode {

/// The locks that the process has once, the outer ones first: whoever holds one takes none before it. They are held
/// while the process forks, so that no thread which is not in the child has one of them there.
enum class ForkRank {
  kDryRuns,  ///< Which one there is.
  kStores,
  kWatchers,
  kOpenWrites,
  kDryRun,
  kSettings,
  kPeers,
  kObservers,
  kPlaces,
  kSymbols,
  kBackground,
  kRunningTest
};

/// Holds a lock while the process forks; once it is free in the child, `renew`, if any, is called there. On the only
/// thread of the child, and once for each rank, when the lock is made.
void HoldWhileForking(ForkRank rank, std::mutex& lock, void (*renew)() = nullptr);

/// Calls `hold` before all these locks are held, on the thread that forks, and `release` after they are free again, in
/// both processes: for locks of what that thread is in the middle of, which its child goes on with. Once.
void HoldOwnWhileForking(void (*hold)(), void (*release)());

}  // namespace antipode
