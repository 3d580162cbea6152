// What reads of one datastore wait for by themselves.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "antipode/scope.h"
#include "barrier/decisions.h"
#include "request/inside.h"

namespace antipode {

/// What reads of one datastore wait for while the lineage of their request is as it is. Thread-safe.
class Demand {
 public:
  /// When incarnations of servers showed all of it.
  using Proofs = std::map<std::string, double>;

  /// What reads by the clients of `store` must see now.
  static std::shared_ptr<Demand> Of(Scope& scope, const Store& store, const Lineage& lineage,
                                    const std::shared_ptr<const Settings>& settings);
  Demand(const Scope& scope, const Store& store, Lineage lineage, std::shared_ptr<const Settings> settings);

  [[nodiscard]] const std::set<Dependency>& wanted() const { return wanted_; }
  /// Datastores that are let pass: this process has no store for them.
  [[nodiscard]] const std::set<std::string>& unknown() const { return unknown_; }
  [[nodiscard]] const Policies& policies() const { return policies_; }
  [[nodiscard]] const Settings& settings() const { return *settings_; }
  /// Of what no check can show; null where there is no such thing.
  [[nodiscard]] std::unique_ptr<UnmetError> Hopeless() const;
  [[nodiscard]] Proofs proofs() const;
  void Prove(const std::string& server, double now_s);

 private:
  Lineage lineage_;
  std::shared_ptr<const Settings> settings_;
  Policies policies_;
  std::set<Dependency> wanted_;
  std::set<std::string> unknown_;
  std::optional<Wait> hopeless_;
  mutable std::mutex lock_;
  Proofs proofs_;
};

/// The demands of one request by their datastores. Never changed.
class DemandSet final : public Attachment {
 public:
  using Demands = std::map<std::string, std::shared_ptr<Demand>>;

  explicit DemandSet(Demands of) : of_(std::move(of)) {}
  [[nodiscard]] const Demands& of() const { return of_; }
  [[nodiscard]] std::shared_ptr<const Attachment> Joined(const Attachment& later) const override;
  /// None: a branch that fulfils promises waits for less.
  [[nodiscard]] std::shared_ptr<const Attachment> Branched(const std::set<std::string>& own) const override;

 private:
  Demands of_;
};

}  // namespace antipode
