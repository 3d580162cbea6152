#include "antipode/outcomes.h"

#include <algorithm>
#include <array>

#include "barrier/unmet.h"
#include "runtime/observers.h"

namespace antipode {
namespace {

constexpr std::array<std::string_view, 13> kNames{
    "visible",       "superseded",   "not_yet",   "lost",        "unknown_log", "aged",    "unreachable",
    "unknown_store", "not_waitable", "abandoned", "undecidable", "deferred",    "excluded"};
constexpr std::size_t kMostDescribed = 5;

std::string Describe(const Dependency& dependency) {
  if (const auto* promise = std::get_if<Promise>(&dependency)) return promise->datastore + "/promise " + promise->id;
  const auto& write = std::get<WriteId>(dependency);
  const auto* number = std::get_if<std::uint64_t>(&write.version);
  return write.datastore + "/" + write.key + "@" + (number ? std::to_string(*number) : std::get<1>(write.version));
}

std::vector<Outcome> Having(const BarrierResult& result, std::initializer_list<Status> statuses) {
  std::vector<Outcome> found;
  for (const Outcome& each : result.outcomes) {
    if (!each.met() && std::count(statuses.begin(), statuses.end(), each.status) != 0) found.push_back(each);
  }
  return found;
}

template <typename Error>
std::unique_ptr<UnmetError> Made(const std::string& message, const BarrierResult& result) {
  return std::make_unique<Error>(message, result);
}

}  // namespace

std::string_view NameOf(Status status) noexcept { return kNames[static_cast<std::size_t>(status)]; }

bool IsMet(Status status) noexcept {
  switch (status) {
    case Status::kVisible:
    case Status::kSuperseded:
    case Status::kAged:
    case Status::kNotWaitable:
    case Status::kDeferred:
    case Status::kExcluded:
      return true;
    default:
      return false;
  }
}

bool IsPending(Status status) noexcept { return status == Status::kNotYet || status == Status::kUnreachable; }

const std::string& DatastoreOf(const Dependency& dependency) noexcept {
  const auto* write = std::get_if<WriteId>(&dependency);
  return write != nullptr ? write->datastore : std::get_if<Promise>(&dependency)->datastore;
}

bool BarrierResult::ok() const noexcept {
  return std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& each) { return each.met(); }) &&
         (incomplete_ok || incomplete.empty());
}

UnmetError::UnmetError(std::string_view code, const std::string& message, BarrierResult result)
    : AntipodeError(code, message), result_(std::move(result)) {}
UnmetError::~UnmetError() = default;
DependencyLost::DependencyLost(const std::string& message, BarrierResult result)
    : UnmetError("dependency_lost", message, std::move(result)) {}
DependencyLost::~DependencyLost() = default;
UnknownDatastore::UnknownDatastore(const std::string& message, BarrierResult result)
    : UnmetError("unknown_datastore", message, std::move(result)) {}
UnknownDatastore::~UnknownDatastore() = default;
VisibilityCheckError::VisibilityCheckError(const std::string& message, BarrierResult result)
    : UnmetError("visibility_check", message, std::move(result)) {}
VisibilityCheckError::~VisibilityCheckError() = default;
IncompleteLineage::IncompleteLineage(const std::string& message, BarrierResult result)
    : UnmetError("incomplete_lineage", message, std::move(result)) {}
IncompleteLineage::~IncompleteLineage() = default;
BarrierTimeout::BarrierTimeout(const std::string& message, BarrierResult result)
    : UnmetError("barrier_timeout", message, std::move(result)) {}
BarrierTimeout::~BarrierTimeout() = default;

std::string Describe(const std::vector<Outcome>& outcomes) {
  std::string text;
  for (std::size_t i = 0; i < outcomes.size() && i < kMostDescribed; ++i) {
    const Outcome& each = outcomes[i];
    text += (i == 0 ? "" : "; ") + Describe(each.dependency) + " " + std::string(NameOf(each.status));
    if (!each.cause.empty()) text += " (" + each.cause + ")";
  }
  if (outcomes.size() > kMostDescribed) text += ", and " + std::to_string(outcomes.size() - kMostDescribed) + " more";
  return text;
}

std::unique_ptr<UnmetError> ErrorOf(const BarrierResult& result) {
  if (result.ok()) return nullptr;
  if (const auto lost = Having(result, {Status::kLost, Status::kAbandoned}); !lost.empty()) {
    return Made<DependencyLost>(
        Describe(lost) + ": waiting cannot bring it back: fail the request or read what is left on purpose", result);
  }
  if (const auto unknown = Having(result, {Status::kUnknownStore}); !unknown.empty()) {
    return Made<UnknownDatastore>(Describe(unknown) + ": register its shim, or use only, exclude or on_unknown",
                                  result);
  }
  if (const auto unjudged = Having(result, {Status::kUnknownLog, Status::kUndecidable}); !unjudged.empty()) {
    return Made<VisibilityCheckError>(
        Describe(unjudged) + ": the server cannot relate it to its history: read the primary, or use on_unknown",
        result);
  }
  if (!result.incomplete.empty() && !result.incomplete_ok) {
    std::string missing;
    for (const Incomplete& mark : result.incomplete) {
      missing += (missing.empty() ? "'" : ", '") + mark.subject + "' " + mark.reason;
    }
    return Made<IncompleteLineage>("the lineage is known to miss dependencies: " + missing +
                                       ". Their visibility cannot be awaited: read the primary, or use on_incomplete",
                                   result);
  }
  return Made<BarrierTimeout>("not visible after " + std::to_string(result.waited_s) +
                                  " s: " + Describe(Having(result, {Status::kNotYet, Status::kUnreachable})) +
                                  ": retry later, read the primary, or give a longer timeout",
                              result);
}

void TellOfUnmet(std::string_view what, const UnmetError& error) {
  const auto tell = [&](const std::string& datastore, const std::string& outcome) {
    WarnSeldom("unmet_" + outcome, datastore,
               "a " + std::string(what) + " did not see all that it depends on in '" + datastore + "' (" + outcome +
                   "). It ended with " + std::string(error.code()) + ": " + error.what());
  };
  for (const Outcome& each : error.result().outcomes) {
    if (!each.met()) tell(DatastoreOf(each.dependency), std::string(NameOf(each.status)));
  }
  if (dynamic_cast<const IncompleteLineage*>(&error) == nullptr) return;
  for (const Incomplete& mark : error.result().incomplete) tell(mark.subject, mark.reason);
}

void Refuse(const UnmetError& error) {
  TellOfUnmet("read", error);
  Throw(error);
}

void Throw(const UnmetError& error) {
  if (const auto* lost = dynamic_cast<const DependencyLost*>(&error)) throw *lost;
  if (const auto* unknown = dynamic_cast<const UnknownDatastore*>(&error)) throw *unknown;
  if (const auto* unjudged = dynamic_cast<const VisibilityCheckError*>(&error)) throw *unjudged;
  if (const auto* incomplete = dynamic_cast<const IncompleteLineage*>(&error)) throw *incomplete;
  throw dynamic_cast<const BarrierTimeout&>(error);
}

}  // namespace antipode
