// What a barrier leaves in the scope for the reads that follow it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "antipode/scope.h"
#include "barrier/decisions.h"
#include "barrier/watcher.h"
#include "request/inside.h"

namespace antipode {

/// What the next read of one datastore must see, on whatever connection it is made. Its timeout is spent only while a
/// read is held back. Thread-safe.
class Floor {
 public:
  Floor(std::string datastore, std::set<Dependency> demanded, double timeout_s, const Policies& policies,
        const std::set<std::string>& proved_on, const Clock& clock);

  [[nodiscard]] const std::string& datastore() const { return datastore_; }
  [[nodiscard]] const std::set<Dependency>& demanded() const { return demanded_; }
  /// A floor that demands both; the later barrier's timeout and policies hold.
  [[nodiscard]] std::shared_ptr<Floor> Raised(const Floor& later) const;
  /// This one for the branch that fulfils promises itself.
  [[nodiscard]] std::shared_ptr<Floor> Without(const std::set<std::string>& ids) const;
  /// Whether this incarnation has shown all of it, in the last so many seconds.
  [[nodiscard]] bool Proved(const std::string& server, double within_s) const;
  /// Whether a read made at or after this look may be answered. Throws UnmetError where waiting cannot help.
  bool Accepts(const Observation& observation);
  /// Holds a read back until a look on its own connection shows the floor. `observe` takes the longest that it may
  /// last. `watcher`, where there is one, looks for all held reads. Throws UnmetError, or Unreachable.
  void Hold(const std::function<Observation(double)>& observe, const std::shared_ptr<Watcher>& watcher = nullptr);

 private:
  friend class HeldRead;
  [[nodiscard]] double LeftS() const;
  [[nodiscard]] Wait Begin(double now_s) const;
  bool Judge(Wait& wait, const Observation& observation);
  void Spend(const Wait& wait);

  std::string datastore_;
  std::set<Dependency> demanded_;
  Policies policies_;
  const Clock& clock_;
  mutable std::mutex lock_;
  double left_s_;
  std::map<std::string, double> proved_;  ///< When incarnations showed all of it.
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

/// One read that a floor holds back: when it looks, how it ends. Neither looks nor pauses.
class HeldRead {
 public:
  HeldRead(std::shared_ptr<Floor> floor, std::shared_ptr<Watcher> watcher);
  /// Spends the time.
  ~HeldRead();
  HeldRead(const HeldRead&) = delete;
  HeldRead& operator=(const HeldRead&) = delete;

  /// How long the next look may last.
  [[nodiscard]] double LookS() const;
  /// Seconds until the next look; none where the read may be answered. Throws UnmetError.
  std::optional<double> Take(const Observation& observation);
  /// The last look failed: throws BarrierTimeout where the time is up.
  void Failed(const Unreachable& error);
  /// May end the present pause; null where nothing does.
  [[nodiscard]] const std::shared_ptr<Hint>& hint() const { return hint_; }

 private:
  std::shared_ptr<Floor> floor_;
  std::shared_ptr<Watcher> watcher_;
  std::shared_ptr<Hint> subscribed_;
  std::shared_ptr<Hint> hint_;
  Pacer pacer_;
  Wait wait_;
};

/// The floors of one request by their datastores. Never changed.
class FloorSet final : public Attachment {
 public:
  explicit FloorSet(std::map<std::string, std::shared_ptr<Floor>> of) : of_(std::move(of)) {}
  [[nodiscard]] const std::map<std::string, std::shared_ptr<Floor>>& of() const { return of_; }
  [[nodiscard]] std::shared_ptr<const Attachment> Joined(const Attachment& later) const override;
  [[nodiscard]] std::shared_ptr<const Attachment> Branched(const std::set<std::string>& own) const override;

 private:
  std::map<std::string, std::shared_ptr<Floor>> of_;
};

/// Makes the next reads of the floor's datastore wait for it, on top of earlier ones.
void SetFloor(Scope& scope, const std::shared_ptr<Floor>& floor);
/// What the next read of a datastore must see; null where nothing.
std::shared_ptr<Floor> FloorIn(const Scope& scope, const std::string& datastore);

}  // namespace antipode
