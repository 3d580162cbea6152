#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "antipode/errors.h"
#include "antipode/export.h"
#include "antipode/write_id.h"

namespace antipode {

/// What became of one dependency.
enum class Status {
  kVisible,
  kSuperseded,
  kNotYet,
  kLost,
  kUnknownLog,
  kAged,
  kUnreachable,
  kUnknownStore,
  kNotWaitable,
  kAbandoned,
  kUndecidable,
  kDeferred,
  kExcluded,
};

/// The word of the specification.
ANTIPODE_EXPORT std::string_view NameOf(Status status) noexcept;
/// Whether a barrier may succeed with it, and whether waiting longer may change it.
ANTIPODE_EXPORT bool IsMet(Status status) noexcept;
ANTIPODE_EXPORT bool IsPending(Status status) noexcept;

/// A write or a promise of a lineage.
using Dependency = std::variant<WriteId, Promise>;
ANTIPODE_EXPORT const std::string& DatastoreOf(const Dependency& dependency) noexcept;

struct Outcome {
  Dependency dependency;
  Status status = Status::kNotYet;
  double waited_s = 0;    ///< From the start of the barrier to this outcome.
  std::string server;     ///< The incarnation that showed it; empty where none was asked.
  std::string cause;      ///< For people.
  bool reported = false;  ///< A policy lets it pass, although it is unmet as such.

  [[nodiscard]] bool met() const noexcept { return reported || IsMet(status); }
};

/// How a barrier or a check ended.
struct ANTIPODE_EXPORT BarrierResult {
  std::vector<Outcome> outcomes;  ///< One for each dependency, sorted.
  double waited_s = 0;
  std::optional<double> eta_s;      ///< Seconds until the pending ones may be visible, where a store can say it.
  std::set<Incomplete> incomplete;  ///< What the lineage is known to miss.
  bool incomplete_ok = false;       ///< Whether the policy lets that pass.

  [[nodiscard]] bool ok() const noexcept;
  explicit operator bool() const noexcept { return ok(); }
};

/// A barrier ended with dependencies that are not visible. The root of five errors; never thrown itself.
class ANTIPODE_EXPORT UnmetError : public AntipodeError {
 public:
  ~UnmetError() override;
  [[nodiscard]] const BarrierResult& result() const noexcept { return result_; }

 protected:
  UnmetError(std::string_view code, const std::string& message, BarrierResult result);

 private:
  BarrierResult result_;
};

/// Something is proved gone, or its promise was abandoned.
class ANTIPODE_EXPORT DependencyLost final : public UnmetError {
 public:
  DependencyLost(const std::string& message, BarrierResult result);
  ~DependencyLost() override;
};

/// A datastore cannot be waited for here.
class ANTIPODE_EXPORT UnknownDatastore final : public UnmetError {
 public:
  UnknownDatastore(const std::string& message, BarrierResult result);
  ~UnknownDatastore() override;
};

/// It cannot be decided whether something is visible.
class ANTIPODE_EXPORT VisibilityCheckError final : public UnmetError {
 public:
  VisibilityCheckError(const std::string& message, BarrierResult result);
  ~VisibilityCheckError() override;
};

/// The lineage is known to miss dependencies.
class ANTIPODE_EXPORT IncompleteLineage final : public UnmetError {
 public:
  IncompleteLineage(const std::string& message, BarrierResult result);
  ~IncompleteLineage() override;
};

/// At the deadline something is not yet visible, or unreachable.
class ANTIPODE_EXPORT BarrierTimeout final : public UnmetError {
 public:
  BarrierTimeout(const std::string& message, BarrierResult result);
  ~BarrierTimeout() override;
};

}  // namespace antipode
