// What connects one barrier, however it is called, to the watchers of its datastores.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "barrier/decisions.h"
#include "barrier/watcher.h"

namespace antipode {

/// What a wait is for: it is a barrier's; each server is asked once; or its caller has another way to go, so that it
/// ends as soon as no server is there, and is no barrier that failed.
enum class Purpose { kBarrier, kCheck, kRoute };

/// A `Wait` that watchers feed. Thread-safe; held by `std::shared_ptr`.
class Waiter final : public Subscriber, public std::enable_shared_from_this<Waiter> {
 public:
  /// Calls `notify` once, from any thread, when `wait` is finished, and never after `Cancel` has returned; it must not
  /// call the waiter.
  Waiter(Wait& wait, std::function<void()> notify, const Clock& clock, Purpose purpose);

  /// Seconds until the deadline of its wait.
  [[nodiscard]] double LeftS() const;
  [[nodiscard]] bool Finished();
  /// Settles what the watchers know already, without a round trip.
  void Recall();
  /// Checks from this thread, where there is one datastore and nobody checks it; false where the watcher has to.
  bool LookHere();
  void Subscribe();
  /// Waits no longer; nothing is recorded nor notified any more. Idempotent.
  void Cancel();

  std::set<Dependency> Wanted(const std::string& datastore) override;
  void WaitedOn(double at_s) override;
  void Take(const std::string& datastore, const Observation& observation) override;
  void Unreached(const std::string& datastore, const std::string& cause) override;
  void Failed(const std::string& datastore, const std::string& cause) override;

 private:
  void Update(const std::string& datastore, const std::function<void(double)>& record);
  /// Under the lock.
  [[nodiscard]] bool IsFinished() const;
  void RecallOf(const std::string& datastore);

  Wait& wait_;
  std::function<void()> notify_;
  const Clock& clock_;
  Purpose purpose_;
  std::mutex lock_;
  std::set<std::string> looked_;
  bool over_ = false;
  bool is_checked_ = false;  ///< It checked in vain, from its own thread.
  std::map<std::string, std::shared_ptr<Watcher>> watchers_;
};

}  // namespace antipode
