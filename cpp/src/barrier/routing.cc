// Where a router of reads sends the next one: to the replica, or to the primary.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "antipode/barrier.h"
#include "antipode/clock.h"
#include "antipode/observer.h"
#include "barrier/call.h"
#include "barrier/demand.h"
#include "barrier/registry.h"
#include "request/inside.h"
#include "request/open_writes.h"
#include "runtime/settings.h"

namespace antipode {
namespace {

/// For one honest check although the time of the request is used up.
constexpr double kLeastS = 0.05;
/// For the question whether a long request may go back: the primary and the replica are asked.
constexpr double kBackS = 0.2;
/// After this, a request that goes on may ask whether it can go back to the replica, each time.
constexpr double kLongS = 30.0;

/// When the reads of each datastore went to its primary; none where they went back. They stay there: what was read at
/// the primary may be newer than what moved them, so that a request that went back as soon as the replica shows the
/// cause could go back in time.
class Moved final : public Attachment {
 public:
  using Since = std::map<std::string, std::optional<double>>;

  explicit Moved(Since since) : since_(std::move(since)) {}

  static std::optional<double> In(const Scope& scope, const std::string& datastore) {
    const auto held = scope.inside().Attached<Moved>();
    if (!held) return std::nullopt;
    const auto found = held->since_.find(datastore);
    return found == held->since_.end() ? std::nullopt : found->second;
  }

  static void Note(Scope& scope, const std::string& datastore, std::optional<double> since_s) {
    scope.inside().Attach(std::make_shared<Moved>(Since{{datastore, since_s}}));
  }

  [[nodiscard]] std::shared_ptr<const Attachment> Joined(const Attachment& later) const override {
    Since both = static_cast<const Moved&>(later).since_;
    both.insert(since_.begin(), since_.end());  // What the later one says of a datastore stays.
    return std::make_shared<Moved>(std::move(both));
  }
  [[nodiscard]] std::shared_ptr<const Attachment> Branched(const std::set<std::string>&) const override {
    return std::make_shared<Moved>(since_);
  }

 private:
  Since since_;
};

/// Spends the time that the reads of a request have.
class Spending {
 public:
  Spending(Scope& scope, const Clock& clock) : clock_(clock) {
    Scope::Inside& inside = scope.inside();
    const std::lock_guard guard(inside.lock);
    allowance_ = inside.Allowed();
    left_s_ = allowance_->LeftS(clock_.Now());
    allowance_->Begin(clock_.Now());
  }
  ~Spending() { allowance_->End(clock_.Now()); }
  Spending(const Spending&) = delete;
  Spending& operator=(const Spending&) = delete;

  /// What there was as it began.
  [[nodiscard]] double left_s() const { return left_s_; }

 private:
  const Clock& clock_;
  std::shared_ptr<Allowance> allowance_;
  double left_s_ = 0;
};

/// Whether the replica shows what a request must see, in time. One that was moved must see what it may have read at the
/// primary by now: the primary's position of this moment.
bool Shows(Scope& scope, const std::string& datastore, bool moved, Clock& clock) {
  const Spending spending(scope, clock);
  BarrierOptions asked;
  asked.only = std::set<std::string>{datastore};
  asked.raise_unmet = false;
  asked.timeout = Seconds(std::max(spending.left_s(), kLeastS));
  if (moved) {
    asked.timeout = Seconds(kBackS);
    asked.lineage = scope.lineage().Merge(Lineage(LineageParts{{}, {{datastore, "unsampled"}}, {}, 0, {}}));
    asked.on_incomplete = Policy::kRaise;
  }
  return Route(asked, clock).ok();
}

bool IsOpenIn(const Scope& scope, const std::string& datastore) {
  const auto open = OpenIn(scope);
  return std::any_of(open.begin(), open.end(), [&](const OpenWrite& each) { return each.datastore == datastore; });
}

bool ReadsAtReplica(Scope& scope, const std::string& datastore, bool has_replica, Clock& clock) {
  if (IsOpenIn(scope, datastore)) return false;
  const auto since_s = Moved::In(scope, datastore);
  if (since_s && clock.Now() - *since_s <= kLongS) return false;
  if (!since_s && !Concerns(scope.lineage(), datastore)) return true;
  if (!has_replica) return false;
  const bool shown = Shows(scope, datastore, since_s.has_value(), clock);
  if (!shown && !since_s) Moved::Note(scope, datastore, clock.Now());
  if (shown && since_s) Moved::Note(scope, datastore, std::nullopt);
  return shown;
}

}  // namespace

ReadsFrom RouteReads(const std::string& datastore) {
  if (Disabled()) return ReadsFrom::kReplica;
  const auto stores = registry::StoresOf(datastore);
  const auto has = [&](ReadsFrom which) {
    return std::any_of(stores.begin(), stores.end(), [&](const auto& each) { return each->reads_from() == which; });
  };
  if (!has(ReadsFrom::kPrimary)) {
    throw ConfigurationError("no client of the primary of '" + datastore + "' is instrumented in this process");
  }
  const auto scope = CurrentScope();
  if (!scope || SettingsInForce()->mode != Mode::kEnforce) return ReadsFrom::kReplica;
  if (ReadsAtReplica(*scope, datastore, has(ReadsFrom::kReplica), stores.front()->clock())) return ReadsFrom::kReplica;
  Count("reads_at_primary", datastore);
  return ReadsFrom::kPrimary;
}

}  // namespace antipode
