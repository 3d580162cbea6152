// A primary's position of now, asked for in one thread a store, whoever waits for it.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "antipode/shim.h"
#include "runtime/clock.h"

namespace antipode {

/// An answer that is to come.
class Fence {
 public:
  /// Waits for it, at most so many seconds.
  void Wait(double timeout_s);
  [[nodiscard]] bool Done();
  /// Nobody wants it any more, nor is called back.
  void Cancel();
  /// The position; empty where none was learned by now.
  std::set<WriteId> Result();
  /// Calls back once it is there; at once where it is.
  void OnDone(std::function<void()> callback);

  /// For the fencer: whether it is still wanted; what it came to.
  bool Begin();
  void Set(std::set<WriteId> writes);

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::function<void()> callback_;
  std::set<WriteId> writes_;
  bool done_ = false;
  bool cancelled_ = false;
};

/// What one barrier asks, by datastore. Several of one where a fail-over left a client at the old primary, which may
/// still answer as one.
using Fences = std::multimap<std::string, std::shared_ptr<Fence>>;

/// What all of them report; nothing where one has reported none by now: it may be the one that was written to.
std::set<WriteId> PositionsOf(Fences::const_iterator first, Fences::const_iterator last);

/// A client may take longer than its limit: so no barrier asks in its own thread, nor in one for each barrier.
class Fencer : public Stepper, public std::enable_shared_from_this<Fencer> {
 public:
  explicit Fencer(Store& store);

  /// The position of a moment from now on; what is being asked already does not count.
  std::shared_ptr<Fence> Ask(double timeout_s);

  std::optional<double> Step() override;
  void Pause(double) override {}
  [[nodiscard]] bool Woken() const override { return false; }

 protected:
  /// Takes in who wants to know by now; whether anybody does.
  bool Begin();
  /// Asks, and notifies them.
  void End();

 private:
  std::weak_ptr<Store> store_;
  std::string datastore_;
  Clock& clock_;
  std::mutex lock_;
  std::vector<std::pair<std::shared_ptr<Fence>, double>> wanted_;
  std::vector<std::pair<std::shared_ptr<Fence>, double>> asked_;
  bool running_ = false;
};

}  // namespace antipode
