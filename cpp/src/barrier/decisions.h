// The barrier's decisions, without I/O, threads or clocks: all APIs and held reads share them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "antipode/outcomes.h"
#include "antipode/settings.h"
#include "antipode/shim.h"

namespace antipode {

/// Seconds after its expiry during which a promise may still be fulfilled by a slow clock.
inline constexpr double kPromiseGraceS = 3'600;
/// The longest pause between two checks; checks this far apart are of one moment.
inline constexpr double kMostPauseS = 0.050;

struct Policies {
  bool raise_unmet = true;
  std::optional<Policy> on_unknown;
  Policy on_incomplete = Policy::kRaise;
  double horizon_h = 168;
  std::uint64_t hour = 0;  ///< The Unix hour it is now.

  /// Those that are configured.
  static Policies Of(const Settings& settings, std::uint64_t hour);
  /// An outcome as it counts under these policies.
  [[nodiscard]] Outcome Settle(Outcome outcome) const;
  /// The outcome of a promise of which a server has no record, and why.
  [[nodiscard]] std::pair<Status, std::string> Judge(const Promise& promise, double unix_s) const;
};

using Pending = std::map<std::string, std::set<Dependency>>;

/// One barrier, or one floor, while it waits. Not thread-safe.
///
/// A datastore is met by one check that shows all that is asked of it: two may reach servers of different
/// histories. Where others had to be waited for, its server may have been replaced meanwhile: it is asked again before
/// the barrier succeeds.
class Wait {
 public:
  Wait(Pending&& pending, const std::vector<Outcome>& settled, std::set<Incomplete> incomplete,
       const Policies& policies, double now_s, double unix_s, double timeout_s);

  [[nodiscard]] const Policies& policies() const { return policies_; }
  [[nodiscard]] const Pending& pending() const { return pending_; }
  [[nodiscard]] double started_s() const { return started_s_; }
  [[nodiscard]] double deadline_s() const { return started_s_ + timeout_s_; }

  /// Whether nothing is pending, or waiting longer cannot make the barrier succeed.
  [[nodiscard]] bool Finished() const;
  /// Waits for the primary's position in place of what marks say is missing.
  void Discharge(const std::string& datastore, const std::set<WriteId>& writes, const std::set<Incomplete>& marks);
  /// Takes over an outcome that needs no check.
  void Settle(const Outcome& outcome);
  void Record(const std::string& datastore, const Observation& observation, double now_s);
  void Unreached(const std::string& datastore, const std::string& cause, double now_s);
  void Failed(const std::string& datastore, const std::string& cause, double now_s);
  /// A check left something to wait for.
  void WaitOn(double now_s);
  [[nodiscard]] BarrierResult Result(double now_s) const;

 private:
  struct Met {
    double at_s;
    std::set<Dependency> asked;
  };
  bool Judge(const Dependency& dependency, const Observation& observation, double now_s);
  void Doubt(double now_s);

  Policies policies_;
  Pending pending_;
  std::set<Incomplete> incomplete_;
  double started_s_;
  double timeout_s_;
  double unix_at_zero_s_;
  std::map<Dependency, Outcome> outcomes_;
  std::map<std::string, double> etas_;
  std::map<std::string, Met> met_;
  double late_s_;
  std::optional<double> fresh_from_s_;
  bool fatal_ = false;
};

/// How long a held read pauses between two checks, and anyone after a check that failed.
class Pacer {
 public:
  [[nodiscard]] static double PauseS(double waited_s);
  double BackoffS();
  /// A check did not fail: the next one that does begins the count again.
  void Succeeded() { failures_ = 0; }

 private:
  int failures_ = 0;
};

}  // namespace antipode
