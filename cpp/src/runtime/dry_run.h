// Who observes this process while it is in a dry run. Nothing but the start includes the room that does.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/outcomes.h"
#include "antipode/settings.h"
#include "runtime/call_stack.h"

namespace antipode {

class Lineage;
class Scope;
class Store;

/// A barrier or check that ends well, or would have without a dry run.
struct BarrierSeen {
  const Scope* scope = nullptr;  ///< Where it was called; null without one.
  CallStack called;              ///< Who called.
  bool at_read = false;
  std::optional<std::set<std::string>> only;
  std::set<std::string> exclude;
  bool dry = false;                ///< Whether it waited for nothing because of the dry run.
  std::vector<Dependency> guards;  ///< What need not be waited for again.
  bool nothing = false;            ///< Whether there was nothing that it could have waited for.
  bool empty = false;              ///< Whether its lineage was empty.
};

/// Is notified of requests, in the thread that does it. Nothing here throws or waits.
class DryRunObserver {
 public:
  virtual ~DryRunObserver();
  /// A request begins: here, or by what came in.
  virtual void Opened(const Scope& scope, bool incoming) = 0;
  /// The store acknowledged a write, or a branch promised it; it entered the scope. `late`: after the response.
  virtual void Wrote(const Scope& scope, const Dependency& write, bool late) = 0;
  /// A client is about to send a read. `automatic`: it can hold it back, and would.
  virtual void Reads(const Scope& scope, Store& client, bool automatic) = 0;
  /// A request is over.
  virtual void Ended() = 0;
  /// A barrier is about to succeed.
  virtual void Succeeds(const BarrierSeen& barrier) = 0;
  virtual void Counted(std::string_view metric, std::string_view subject) = 0;
  /// A `read` or `barrier` cannot see what its scope wrote in a transaction that is open; `wrote`: who wrote first.
  virtual void BeforeCommit(const Scope& scope, const std::string& what, const std::string& datastore,
                            const CallStack& wrote) = 0;
  /// A message is handled, in a scope or in none, that says nothing of this library's in its headers.
  virtual void Unlabelled(const Scope* scope, const std::string& datastore) = 0;
  /// The lineage of a scope is about to leave this process.
  virtual void Leaves(const Scope& scope) = 0;
  /// A lineage without the notes of a dry run in it, which the scope keeps apart.
  virtual Lineage Absorb(const Scope& scope, const Lineage& lineage) = 0;
  /// The notes that travel with the lineage of a scope.
  virtual std::set<std::string> Notes(const Scope& scope) = 0;
  /// Waits until what is found out about reads is found, but no longer than so many seconds.
  virtual void Settle(double timeout_s) = 0;
  /// The dry run is over.
  virtual void Close() = 0;
};

/// The dry run of this process; null where there is none.
std::shared_ptr<DryRunObserver> DryRunNow();
/// Begins and ends dry runs, as is configured now.
void FollowDryRun();

/// Begins one. Of the room above.
std::shared_ptr<DryRunObserver> MakeDryRun(const Settings& settings);

}  // namespace antipode
