// Which reads that no barrier guards are checked afterwards.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "dry_run/staleness_check.h"

namespace antipode::dry_run {

/// Checks reads, a few at a time; what is beyond is dropped and counted. That a read is over is known from what its
/// thread does next. Thread-safe.
class Evidence {
 public:
  /// Datastore, file and line of reads.
  using Finding = std::tuple<std::string, std::string, int>;

  /// Whether one more read of a finding shall be checked; counts it where not.
  bool Wants(const Finding& finding);
  /// Checks a read of this thread, once that is over.
  void Seek(const std::shared_ptr<StalenessCheck>& check);
  /// This thread goes on: its reads are over, as are those of threads that ended.
  void Over();
  /// A check has ended.
  void Ended(const StalenessCheck& check);
  /// Waits until each read that is over was checked once, but no longer than so many seconds.
  void Settle(double timeout_s);
  /// Checks nothing any more; what is known by now is found.
  void Close();

 private:
  using Checks = std::vector<std::shared_ptr<StalenessCheck>>;
  /// A read that may still be under way.
  struct Open {
    std::weak_ptr<const char> reader;  ///< Gone with its thread.
    std::shared_ptr<StalenessCheck> check;
  };
  struct Looked {
    int reads = 0;
    std::chrono::steady_clock::time_point last;
  };

  std::mutex lock_;
  std::map<Finding, Looked> looked_;
  Checks running_;
  std::vector<Open> open_;
  std::atomic<bool> any_open_{false};
  bool closed_ = false;
};

}  // namespace antipode::dry_run
