// What a barrier leaves in the scope for the reads that follow it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "antipode/floor.h"
#include "antipode/scope.h"
#include "barrier/decisions.h"
#include "barrier/watcher.h"
#include "request/inside.h"
#include "runtime/allowance.h"

namespace antipode {

/// The floor of a barrier that was called. Its timeout is spent only while a read is held back.
class BarrierFloor : public Floor, public std::enable_shared_from_this<BarrierFloor> {
 public:
  /// When incarnations of servers showed all of it.
  using Proofs = std::map<std::string, double>;

  BarrierFloor(std::string datastore, std::set<Dependency> demanded, std::shared_ptr<Allowance> allowance,
               const Policies& policies, Proofs proofs, const Clock& clock);

  [[nodiscard]] const std::string& datastore() const override { return datastore_; }
  [[nodiscard]] const std::set<Dependency>& demanded() const override { return demanded_; }
  /// A floor that demands both; the later barrier's timeout and policies hold.
  [[nodiscard]] std::shared_ptr<BarrierFloor> Raised(const BarrierFloor& later) const;
  /// This one for the branch that fulfils promises itself.
  [[nodiscard]] std::shared_ptr<BarrierFloor> Without(const std::set<std::string>& ids) const;
  [[nodiscard]] Proofs proofs() const;

  [[nodiscard]] bool Proved(const std::string& server, double within_s) const override;
  [[nodiscard]] double LookS() const override;
  [[nodiscard]] double BlockS(double longest_s) const override;
  [[nodiscard]] bool Served() const override { return false; }
  bool Accepts(const Observation& observation) override;
  void Hold(const Look& look, Store* watched) override;
  void Expire(const Unreachable& cause) override;
  void FailSnapshot(const StaleSnapshot& error, const std::function<bool(const Floor&)>& shows) override;

  /// What holds the read back, one after the other.
  virtual std::vector<std::shared_ptr<BarrierFloor>> Stages() { return {shared_from_this()}; }

 protected:
  friend class HeldRead;
  [[nodiscard]] const Clock& clock() const { return clock_; }
  /// Seconds left for holding reads back.
  [[nodiscard]] virtual double LeftS() const;
  /// Seconds that a check gets although the time is up.
  [[nodiscard]] virtual double LeastLookS() const;
  virtual void Prove(const std::string& server, double now_s);
  /// Ends a read that is not shown what it demands.
  virtual void Fail(const UnmetError& error);
  /// Ends a read whose check failed, if the time is up.
  virtual void FailLate(Wait& wait, const Unreachable& cause);

  /// The same of another floor.
  static double LeftOf(const BarrierFloor& floor) { return floor.LeftS(); }
  [[nodiscard]] Wait Begin() const;
  /// Whether the read may be answered.
  bool Judge(Wait& wait, const Observation& observation);
  /// Whether the time is up, and with it the read is over.
  bool EndsLate(const Wait& wait);

 private:
  std::string datastore_;
  std::set<Dependency> demanded_;
  std::shared_ptr<Allowance> allowance_;
  Policies policies_;
  const Clock& clock_;
  mutable std::mutex lock_;
  Proofs proofs_;
};

/// A watcher's word that a server shows by now what a read must see. It ends a pause, and decides nothing.
class Hint final : public Subscriber {
 public:
  Hint(double since_s, std::set<Dependency> wanted) : since_s_(since_s), left_(std::move(wanted)) {}
  /// Whether there is no more to come.
  [[nodiscard]] bool Given() const { return given_.IsSet(); }
  void Pause(double timeout_s) const { given_.Wait(timeout_s); }
  void Give() { given_.Set(); }

  [[nodiscard]] double since_s() const override { return since_s_; }
  std::set<Dependency> Wanted(const std::string&) override;
  void Take(const std::string&, const Observation& observation) override;
  void Unreached(const std::string&, const std::string&) override { Give(); }
  void Failed(const std::string&, const std::string&) override { Give(); }

 private:
  double since_s_;
  std::mutex lock_;
  std::set<Dependency> left_;
  Wake given_;
};

/// One read that a floor holds back: when it checks, how it ends. Neither checks nor pauses.
class HeldRead {
 public:
  HeldRead(std::shared_ptr<BarrierFloor> floor, std::shared_ptr<Watcher> watcher);
  /// Spends the time.
  ~HeldRead();
  HeldRead(const HeldRead&) = delete;
  HeldRead& operator=(const HeldRead&) = delete;

  /// How long the next check may last.
  [[nodiscard]] double LookS() const;
  /// Seconds until the next check; none where the read may be answered. Throws UnmetError.
  std::optional<double> Take(const Observation& observation);
  /// The last check failed: throws BarrierTimeout where the time is up.
  void Failed(const Unreachable& error) { floor_->FailLate(wait_, error); }
  /// May end the present pause; null where nothing does.
  [[nodiscard]] const std::shared_ptr<Hint>& hint() const { return hint_; }

 private:
  std::shared_ptr<BarrierFloor> floor_;
  std::shared_ptr<Watcher> watcher_;
  std::shared_ptr<Hint> subscribed_;
  std::shared_ptr<Hint> hint_;
  Pacer pacer_;
  Wait wait_;
};

/// The floors of one request by their datastores. Never changed.
class FloorSet final : public Attachment {
 public:
  using Floors = std::map<std::string, std::shared_ptr<BarrierFloor>>;

  explicit FloorSet(Floors of) : of_(std::move(of)) {}
  [[nodiscard]] const Floors& of() const { return of_; }
  [[nodiscard]] std::shared_ptr<const Attachment> Joined(const Attachment& later) const override;
  [[nodiscard]] std::shared_ptr<const Attachment> Branched(const std::set<std::string>& own) const override;

 private:
  Floors of_;
};

/// Makes the next reads of the floor's datastore wait for it, on top of earlier ones.
void SetFloor(Scope& scope, const std::shared_ptr<BarrierFloor>& floor);
/// What barriers that were called left to the next read of a datastore; null where nothing.
std::shared_ptr<BarrierFloor> FloorIn(const Scope& scope, const std::string& datastore);

}  // namespace antipode
