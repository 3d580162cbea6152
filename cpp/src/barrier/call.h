// One barrier, from its arguments to its conclusion, but for the waiting: that differs by how it is called.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "antipode/barrier.h"
#include "barrier/decisions.h"
#include "barrier/fence.h"
#include "barrier/plan.h"
#include "barrier/waiter.h"
#include "runtime/clock.h"
#include "runtime/dry_run.h"

namespace antipode {

/// One check of each registered store: does it have the logs of datastores that are unknown here?
class Comparison {
 public:
  Comparison(const std::set<WriteId>& strangers, Policies policies, const Clock& clock, double timeout_s);
  [[nodiscard]] bool empty() const { return asked_.empty(); }
  Wait& wait() { return wait_; }
  /// Those of the strangers whose log a registered store has.
  std::vector<Outcome> Outcomes();

 private:
  using Asked = std::map<Dependency, std::vector<std::pair<WriteId, std::shared_ptr<Store>>>>;
  static Pending PendingOf(const std::set<WriteId>& strangers, Asked& asked);
  const Clock& clock_;
  Asked asked_;
  Wait wait_;
};

class Call {
 public:
  /// Plans the wait. Throws ConfigurationError, or std::invalid_argument.
  Call(const BarrierOptions& options, Clock& clock, Purpose purpose = Purpose::kBarrier);

  /// Looks at what is registered, where the lineage names what is unknown here; null where there is nothing to ask.
  std::unique_ptr<Comparison> Compare();
  /// Takes over what it found; throws ConfigurationError where one store has two names.
  void Compared(Comparison& comparison);
  /// Begins to ask primaries for their positions, all at once; how long to wait for them.
  Fences AskFences();
  [[nodiscard]] double FenceS() const;
  [[nodiscard]] bool IsLeftToReads(const std::string& datastore) const;
  /// Waits for the positions that are there by now, in place of what was dropped.
  void RaiseFences(const Fences& fences);
  std::shared_ptr<Waiter> MakeWaiter(std::function<void()> notify);
  [[nodiscard]] double LeftS() const;
  /// The result, after leaving in the scope what later reads need. Throws UnmetError.
  BarrierResult Conclude();
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] Clock& clock() const { return clock_; }
  /// The error of a barrier that nobody could begin to wait for.
  [[noreturn]] void NotStarted(const std::string& cause);

 private:
  [[nodiscard]] Lineage About() const;
  /// Tells of transactions of this request whose writes it cannot wait for: they are open.
  void TellOfOpenTransactions(const Lineage& about) const;
  void LeaveAged(const BarrierResult& result);
  void LeaveFloors(const BarrierResult& result);
  /// What it would wait for outside of a dry run.
  [[nodiscard]] Plan WithoutDryRun(const Lineage& about, const std::set<std::string>& own) const;
  void Tell() const;

  BarrierOptions options_;
  Clock& clock_;
  std::shared_ptr<Scope> scope_;
  Mode mode_;
  Policies policies_;
  double timeout_s_;
  Plan plan_;
  Purpose purpose_;
  std::shared_ptr<DryRunObserver> observer_;
  CallStack called_;
  std::optional<Plan> wanted_;  ///< In a dry run, what it would wait for without.
  std::optional<Wait> wait_;
};

/// What a router of reads asks before it sends one: `Purpose::kRoute`.
BarrierResult Route(const BarrierOptions& options, Clock& clock);

}  // namespace antipode
