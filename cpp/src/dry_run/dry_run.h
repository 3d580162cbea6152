// What this process's dry run knows and writes. The specification says what each record means.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "antipode/lineage.h"
#include "antipode/scope.h"
#include "antipode/shim.h"
#include "dry_run/declared_roles.h"
#include "dry_run/evidence.h"
#include "dry_run/notes.h"
#include "dry_run/records.h"
#include "runtime/dry_run.h"
#include "runtime/places.h"

namespace antipode::dry_run {

class DryRun final : public DryRunObserver {
 public:
  /// Writes records where `settings` has a directory; without one, findings are counted and said alone.
  explicit DryRun(const Settings& settings);

  void Opened(const Scope& scope, bool incoming) override;
  void Wrote(const Scope& scope, const Dependency& write, bool late) override;
  void Reads(const Scope& scope, Store& client, bool automatic) override;
  void Ended() override { evidence_->Over(); }
  void Succeeds(const BarrierSeen& barrier) override;
  void Counted(std::string_view metric, std::string_view subject) override;
  void BeforeCommit(const Scope& scope, const std::string& what, const std::string& datastore,
                    const CallStack& wrote) override;
  void Unlabelled(const Scope* scope, const std::string& datastore) override;
  void Leaves(const Scope& scope) override;
  Lineage Absorb(const Scope& scope, const Lineage& lineage) override;
  std::set<std::string> Notes(const Scope& scope) override;
  void Settle(double timeout_s) override;
  void Close() override;

 private:
  Place Here();
  void Lint(const char* lint, std::string_view datastore, std::string_view detail, const Scope* scope,
            const Place& place);
  /// Reports a client that is not declared to read from a replica, if its server says that it is one.
  void AskRole(const Scope& scope, Store& client);
  /// What a record says of the request, the test and the place it is about.
  static std::string About(const Scope* scope, const Place* place);
  /// Writes a record of what a request did, where there are records; its number.
  int Record(std::string_view kind, const Scope* scope, const Place* place, const std::string& about);
  /// Finds out for how long the read of a record would have had to wait.
  void LookInto(Store& client, const Place& place, const std::vector<Dependency>& missed, int number);
  /// Counts an unguarded read, and says its place once.
  static void Found(const std::string& datastore, const Place& place, const std::vector<Dependency>& missed);

  std::string region_;
  std::shared_ptr<Records> records_;  ///< Null where there is no directory.
  std::shared_ptr<Evidence> evidence_ = std::make_shared<Evidence>();
  DeclaredRoles roles_;
  Places places_;
};

}  // namespace antipode::dry_run
