// What one read must see, on whatever connection it is made.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "antipode/floor.h"
#include "barrier/decisions.h"
#include "barrier/demand.h"
#include "barrier/watcher.h"

namespace antipode {

/// What one read must see: a list of demands, of barriers that were called first, which have their time and their
/// errors before the automatic one of the read itself has its own. One check shows all of them, or the read is not
/// answered.
class ReadFloor final : public Floor, public std::enable_shared_from_this<ReadFloor> {
 public:
  using Demands = std::vector<std::shared_ptr<Demand>>;

  /// `flaw` is what no check can show the read; null for nothing. `throws` where a read that was shown all the rest
  /// throws it, instead of being answered.
  /// `stale` counts the read once it is answered; null where it is counted as it is let go.
  ReadFloor(std::string datastore, Demands demands, std::shared_ptr<const UnmetError> flaw, bool throws,
            std::shared_ptr<StaleRead> stale, const Clock& clock);

  [[nodiscard]] const std::string& datastore() const override { return datastore_; }
  [[nodiscard]] const std::set<Dependency>& demanded() const override { return demanded_; }
  [[nodiscard]] const Demands& demands() const { return demands_; }
  [[nodiscard]] bool Proved(const std::string& server, double within_s) const override;
  [[nodiscard]] bool Within(const Floor* other) const override;
  [[nodiscard]] double PollS() const override;
  [[nodiscard]] double BlockS(double longest_s) const override;
  [[nodiscard]] bool Served() const override { return served_; }
  [[nodiscard]] bool Counted() const override { return counted_; }
  bool Accepts(const Observation& observation) override;
  void Pass() override;
  void Hold(const Look& look, Store* watched) override;
  void Expire(const Unreachable& cause) override;
  void FailSnapshot(const StaleSnapshot& error, const std::function<bool(const Floor&)>& shows) override;

 private:
  friend class HeldRead;
  /// Seconds left for holding the read back.
  [[nodiscard]] double LeftS() const;
  [[nodiscard]] Wait Begin(const Demand& demand) const;
  /// Whether a demand lets the read go; one whose time is up does, or throws.
  bool Judge(Demand& demand, Wait& wait, const Observation& observation);
  /// Ends a read that is not shown what it must see.
  void Fail(const Demand& demand, const UnmetError& error);
  /// Ends a read whose check failed, if the time of a demand is up and such reads throw.
  void FailLate(const Demand& demand, Wait& wait, const Unreachable& cause) const;
  /// Lets the read go although it is not shown what an automatic demand wants.
  void Serve(const AntipodeError& error);
  void Count(const AntipodeError& error);

  std::string datastore_;
  Demands demands_;
  std::set<Dependency> demanded_;
  std::shared_ptr<const UnmetError> flaw_;
  bool throws_;
  std::shared_ptr<StaleRead> stale_;
  const Clock& clock_;
  std::atomic<bool> served_{false};
  std::atomic<bool> counted_{false};
};

/// A watcher's word that a server shows by now what a read must see. It ends a pause, and decides nothing.
class Hint final : public Subscriber {
 public:
  explicit Hint(std::set<Dependency> wanted) : left_(std::move(wanted)) {}
  /// Whether there is no more to come.
  [[nodiscard]] bool Given() const { return given_.IsSet(); }
  void Pause(double timeout_s) const { given_.Wait(timeout_s); }
  void Give() { given_.Set(); }

  std::set<Dependency> Wanted(const std::string&) override;
  void Take(const std::string&, const Observation& observation) override;
  void Unreached(const std::string&, const std::string&) override { Give(); }
  void Failed(const std::string&, const std::string&) override { Give(); }

 private:
  std::mutex lock_;
  std::set<Dependency> left_;
  Wake given_;
};

/// One read that a floor holds back: when it checks, how it ends. Neither checks nor pauses. One demand at a time has
/// its turn, the first that the last check did not show: its time is spent, and it paces.
class HeldRead {
 public:
  HeldRead(std::shared_ptr<ReadFloor> floor, std::shared_ptr<Watcher> watcher);
  /// Spends the time.
  ~HeldRead() { End(); }
  HeldRead(const HeldRead&) = delete;
  HeldRead& operator=(const HeldRead&) = delete;

  /// How long the next check may last.
  [[nodiscard]] double PollS() const;
  /// Seconds until the next check; none where the read may be answered. Throws UnmetError.
  std::optional<double> Take(const Observation& observation);
  /// The last check failed: throws BarrierTimeout where the time is up.
  void Failed(const Unreachable& error) { floor_->FailLate(*demand_, wait_, error); }
  /// May end the present pause; null where nothing does.
  [[nodiscard]] const std::shared_ptr<Hint>& hint() const { return hint_; }

 private:
  void End();
  double PauseS();

  std::shared_ptr<ReadFloor> floor_;
  std::shared_ptr<Watcher> watcher_;
  std::shared_ptr<Hint> subscribed_;
  std::shared_ptr<Hint> hint_;
  std::shared_ptr<Demand> demand_;
  Wait wait_;
};

/// Counts a read that may be stale where it is let go, or once `stale` says that it is answered.
void ServeStale(const std::string& datastore, const AntipodeError& error, StaleRead* stale);

}  // namespace antipode
