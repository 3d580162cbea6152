// Checks one server for everybody who waits there: equal waits share each check.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "antipode/shim.h"
#include "barrier/decisions.h"
#include "barrier/expectation.h"
#include "barrier/subscribers.h"
#include "runtime/clock.h"

namespace antipode {

inline constexpr double kLookS = 1.0;     ///< The longest one check may take.
inline constexpr double kConnectS = 5.0;  ///< The longest that making a connection may take.
inline constexpr const char* kClosed = "its shim was closed";

/// What one server incarnation is known to show, over one connection.
class Knowledge {
 public:
  void Learn(const Observation& observation, double now_s);
  /// The part that is known to be visible; none where that is nothing.
  [[nodiscard]] std::optional<Observation> Recall(const std::set<Dependency>& wanted) const;
  /// Whether the server did not know the log of a write, so recently that it counts.
  [[nodiscard]] bool Lacks(const WriteId& write, double now_s) const;
  void Forget();

 private:
  /// Remembers that the log of a write is unknown, and forgets it by any other answer.
  void NoteUnknown(const WriteId& write, Status status, double now_s);
  void Add(const WriteId& write);
  [[nodiscard]] bool Has(const Dependency& wanted) const;

  std::string server_;
  std::string caveat_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> positions_;
  std::set<WriteId> opaque_;
  std::set<std::string> fulfilled_;
  std::map<WriteId, double> unknown_;  ///< Since when.
};

/// A mutex that can be waited for for a while. The library's own: thread sanitizers do not know what `std::timed_mutex`
/// calls.
class TimedMutex {
 public:
  void lock();
  bool try_lock();
  bool try_lock_for(std::chrono::duration<double> timeout);
  void unlock();

 private:
  std::mutex lock_;
  std::condition_variable free_;
  bool held_ = false;
};

/// The datastores at which a thread checks now.
std::vector<std::string> WatchersAtWork();

/// What an endpoint shows of writes and promises: one check of one history.
Observation ObserveAll(Endpoint& endpoint, const std::set<Dependency>& wanted, double deadline_s, const Clock& clock);

class Watcher final : public Stepper, public std::enable_shared_from_this<Watcher> {
 public:
  /// Nothing is opened before somebody waits.
  explicit Watcher(Store& store);

  /// Checks for somebody until it wants nothing more or unsubscribes; at once, unless it `is_checked`: `TryLook` was in
  /// vain just now.
  void Subscribe(const std::shared_ptr<Subscriber>& subscriber, bool is_checked = false);
  void Unsubscribe(const std::shared_ptr<Subscriber>& subscriber);
  /// What is known to be visible without a check.
  std::optional<Observation> Recall(const std::set<Dependency>& wanted);
  /// Whether it is known without a check that the server does not know the log of a write.
  bool Lacks(const WriteId& write);
  /// Why the last check failed; empty where it did not.
  std::string Away();
  /// Whether no server was there a moment ago: its host refused, or has no address.
  bool Absent();
  /// Looks from the caller's thread; none when the watcher has to: it is at work, or has no connection.
  std::optional<Observation> TryLook(const std::set<Dependency>& wanted, double timeout_s);
  void WakeUp() { wake_.Set(); }
  /// Fails whoever waits, and releases the connection. Idempotent.
  void Close();

  std::optional<double> Step() override;
  void Pause(double timeout_s) override;
  [[nodiscard]] bool Woken() const override { return wake_.IsSet(); }

 private:
  std::optional<double> Work();
  bool IsClosed();
  Observation Look(const std::set<Dependency>& wanted, double timeout_s);
  /// Whether anybody waits; where nobody does, the watcher is at rest.
  bool IsWaitedFor();
  /// Why nobody checks for somebody; empty where somebody does. Under the lock.
  std::string Join(const std::shared_ptr<Subscriber>& subscriber, const std::set<Dependency>& wanted, bool is_checked);
  /// Tells those who waited when a check began that it showed nothing.
  void Fail(const std::function<void(Subscriber&)>& tell);
  /// Tells whom a check was for, or met; when those joined who wait no longer. `first_us`: when it began, none for one
  /// that followed another at once.
  std::vector<std::int64_t> Tell(const Observation& observation, std::optional<std::int64_t> first_us);
  /// Remembers one wait of those that a check ended which the one before had not. Under the lock.
  void Learn(std::vector<std::int64_t> ended, std::optional<std::int64_t> until_us, std::int64_t checked_us);
  /// Seconds until the next check, after one that left something to wait for. Under the lock.
  double PausedS();
  [[nodiscard]] std::int64_t NowUs() const;
  /// Whether the server ends a pause once what is waited for may be visible. Under the lock.
  [[nodiscard]] bool EndsPauses();
  std::shared_ptr<Endpoint> Held();
  /// Under the lock.
  void SetRunning(bool running);
  void DropEndpoint();
  /// Remembers why a check failed.
  void Miss(const std::string& cause);
  void Rest();

  std::string datastore_;
  std::weak_ptr<Store> store_;
  Clock& clock_;
  std::mutex lock_;  ///< Of who waits.
  Subscribers subscribers_;
  Expectation expectation_;
  std::optional<std::int64_t> checked_us_;  ///< When the last check began that showed anything.
  std::optional<std::int64_t> since_us_;    ///< The same of the one before the last pause.
  std::int64_t due_us_ = 0;                 ///< When the present pause is over.
  bool is_checked_ = false;                 ///< Who waits checked in vain just now.
  bool running_ = false;
  bool closed_ = false;
  TimedMutex using_;       ///< Held by who uses the connection.
  std::mutex known_lock_;  ///< Of what is known, and which connection it is of.
  std::shared_ptr<Endpoint> endpoint_;
  Knowledge knowledge_;
  std::string away_;
  std::optional<double> absent_s_;  ///< When it was found that no server is there.
  Pacer pacer_;
  Wake wake_;
};

}  // namespace antipode
