// What reads of one datastore must see, and who asked for it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "antipode/scope.h"
#include "barrier/decisions.h"
#include "request/inside.h"
#include "runtime/allowance.h"

namespace antipode {

/// What a barrier that was called wants the next reads of a datastore to see. Thread-safe.
class Demand {
 public:
  /// When incarnations of servers showed all of it.
  using Proofs = std::map<std::string, double>;

  Demand(std::set<Dependency> wanted, const Policies& policies, std::shared_ptr<Allowance> allowance,
         Proofs proofs = {});
  virtual ~Demand() = default;
  Demand(const Demand&) = delete;
  Demand& operator=(const Demand&) = delete;

  [[nodiscard]] const std::set<Dependency>& wanted() const { return wanted_; }
  [[nodiscard]] const Policies& policies() const { return policies_; }
  /// The time for holding reads back.
  [[nodiscard]] Allowance& allowance() const { return *allowance_; }
  [[nodiscard]] Proofs proofs() const;
  void Prove(const std::string& server, double now_s);
  /// Whether an incarnation showed all of it after a moment.
  [[nodiscard]] bool ProvedAfter(const std::string& server, double since_s) const;

  /// Whether no barrier was called: reads wait by themselves.
  [[nodiscard]] virtual bool Automatic() const { return false; }
  /// Whether a read that is not shown all of it throws, instead of being answered.
  [[nodiscard]] virtual bool Raises() const { return true; }
  /// Seconds that a check gets although the time is up.
  [[nodiscard]] virtual double LeastLookS() const;
  /// Both; the later barrier's time and policies hold.
  [[nodiscard]] virtual std::shared_ptr<Demand> Joined(const std::shared_ptr<Demand>& later) const;
  /// It for a branch that fulfils these promises itself; null where it has none.
  [[nodiscard]] virtual std::shared_ptr<Demand> Branched(const std::set<std::string>& own) const;

 private:
  std::set<Dependency> wanted_;
  Policies policies_;
  std::shared_ptr<Allowance> allowance_;
  mutable std::mutex lock_;
  Proofs proofs_;
};

/// Whether anything in a lineage is of a datastore, or of any.
bool Concerns(const Lineage& lineage, const std::string& datastore);

/// What reads of one datastore wait for by themselves while their request depends on the same. Its time is the
/// request's. When that is used up, or no check can help, the read is answered all the same, and counted, unless stale
/// reads are to throw.
class AutomaticDemand final : public Demand {
 public:
  /// What the next read by a client of `store` must see besides what barriers that were called demand; null for nothing
  /// at all.
  static std::shared_ptr<AutomaticDemand> Of(Scope& scope, const Store& store,
                                             const std::shared_ptr<const Settings>& settings,
                                             const std::shared_ptr<Demand>& called);

  /// Datastores that are let pass: this process has no store for them.
  [[nodiscard]] const std::set<std::string>& unknown() const { return found_.unknown; }
  /// Of what no check can show; null where there is no such thing.
  [[nodiscard]] std::unique_ptr<UnmetError> Flaw() const;
  /// Whether that is what a read throws.
  [[nodiscard]] bool Throws() const { return Raises() && Flaw() != nullptr; }

  [[nodiscard]] bool Automatic() const override { return true; }
  [[nodiscard]] bool Raises() const override { return settings_->on_stale == OnStale::kRaise; }
  [[nodiscard]] double LeastLookS() const override;
  /// The later one: it is of more.
  [[nodiscard]] std::shared_ptr<Demand> Joined(const std::shared_ptr<Demand>& later) const override { return later; }
  /// None: a branch that fulfils promises waits for less.
  [[nodiscard]] std::shared_ptr<Demand> Branched(const std::set<std::string>&) const override { return nullptr; }

 private:
  /// What a lineage demands of a datastore.
  struct Found {
    std::set<Dependency> wanted;
    Policies policies;
    std::set<std::string> unknown;
    std::optional<Wait> hopeless;
  };
  static Found Find(const Scope& scope, const Store& store, const Lineage& lineage, const Settings& settings);
  AutomaticDemand(Lineage lineage, std::shared_ptr<const Settings> settings, std::shared_ptr<Demand> called,
                  Found found, std::set<Dependency> wanted, std::shared_ptr<Allowance> allowance, Proofs proofs);

  Lineage lineage_;
  std::shared_ptr<const Settings> settings_;
  std::shared_ptr<Demand> called_;
  Found found_;
};

/// The demands of one request, by datastore and by who asked. Never changed.
class DemandSet final : public Attachment {
 public:
  /// By datastore, and whether they are automatic.
  using Demands = std::map<std::pair<std::string, bool>, std::shared_ptr<Demand>>;

  explicit DemandSet(Demands of) : of_(std::move(of)) {}
  /// Makes the next reads of a datastore wait for a demand, on top of what they wait for.
  static void Leave(Scope& scope, const std::string& datastore, const std::shared_ptr<Demand>& demand);
  /// What barriers that were called, or automatic ones, demand of reads; null for nothing.
  static std::shared_ptr<Demand> In(const Scope& scope, const std::string& datastore, bool automatic = false);

  [[nodiscard]] std::shared_ptr<const Attachment> Joined(const Attachment& later) const override;
  [[nodiscard]] std::shared_ptr<const Attachment> Branched(const std::set<std::string>& own) const override;

 private:
  Demands of_;
};

}  // namespace antipode
