#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "antipode/export.h"
#include "antipode/outcomes.h"
#include "antipode/scope.h"
#include "antipode/settings.h"
#include "antipode/shim.h"

namespace antipode {

using Seconds = std::chrono::duration<double>;

/// `kNow` waits at once, where the library checks. `kRead` leaves a minimum position, which each instrumented
/// connection satisfies just before its next read.
enum class At { kNow, kRead };

struct BarrierOptions {
  Seconds timeout{0};                         ///< Positive; at most `max_timeout`.
  std::optional<Lineage> lineage;             ///< None: the current one.
  std::optional<std::set<std::string>> only;  ///< Datastores to wait for.
  std::set<std::string> exclude;              ///< Datastores not to wait for.
  At at = At::kNow;
  bool raise_unmet = true;           ///< Whether what is unmet is thrown; else the result says so.
  std::optional<Policy> on_unknown;  ///< None: as configured.
  std::optional<Policy> on_incomplete;
  std::optional<Mode> mode;
};

/// Blocks until a lineage is visible where the caller is about to read. It neither hangs nor succeeds silently.
///
///     antipode::BarrierOptions options;
///     options.timeout = std::chrono::seconds(5);
///     antipode::Barrier(options);
///
/// Throws one of the five of UnmetError, ConfigurationError, or std::invalid_argument where the timeout is no positive
/// number.
ANTIPODE_EXPORT BarrierResult Barrier(const BarrierOptions& options);

/// How a barrier ended, for code without exceptions.
struct BarrierAttempt {
  BarrierResult result;
  std::string code;  ///< Of the error that `Barrier` would have thrown; empty for none.
  std::string message;
  explicit operator bool() const noexcept { return code.empty(); }
};
/// As `Barrier`, but throws nothing. A mistake in an argument has the code `argument`.
ANTIPODE_EXPORT BarrierAttempt TryBarrier(const BarrierOptions& options) noexcept;

/// As `Barrier`, in the caller's scope; no thread waits for it. What is wrong with the call is thrown at once.
ANTIPODE_EXPORT std::future<BarrierResult> BarrierAsync(const BarrierOptions& options);

/// A barrier that runs in the background.
class ANTIPODE_EXPORT Cancellable {
 public:
  /// Stops waiting; the callback is not called any more. Whether it was still running.
  bool Cancel();

 private:
  friend ANTIPODE_EXPORT Cancellable BarrierCallback(std::function<void(const BarrierResult&)>, const BarrierOptions&);
  struct State;
  std::shared_ptr<State> state_;
};
/// Calls back once, met or unmet, unless cancelled, in the caller's scope and on one of the library's few threads. No
/// thread waits for it. Callbacks that block hold up other callbacks, and no barrier.
ANTIPODE_EXPORT Cancellable BarrierCallback(std::function<void(const BarrierResult&)> callback,
                                            const BarrierOptions& options);

/// A block of this thread in which reads wait by themselves, or do not, whatever is configured. Barriers that are
/// called in it are as they are. Ended on the thread on which it began; another thread of the request begins its own.
///
///     const antipode::BarriersGuard block(antipode::ReadBarriers::kExplicit);  // this block wants speed
class ANTIPODE_EXPORT BarriersGuard {
 public:
  explicit BarriersGuard(ReadBarriers which);
  ~BarriersGuard();
  BarriersGuard(const BarriersGuard&) = delete;
  BarriersGuard& operator=(const BarriersGuard&) = delete;

 private:
  std::optional<ReadBarriers> around_;
};

/// Looks once at each server, for at most a second, or without `refresh` not at all, and never throws for what is
/// unmet. Of the options, the lineage, `only` and `exclude` count.
ANTIPODE_EXPORT BarrierResult Check(const BarrierOptions& options = {}, bool refresh = true);

/// Where the next read of a datastore goes, for a router of reads: to the replica that shows enough, or the primary.
///
/// A request that depends on nothing there reads at the replica. Otherwise this waits, within the time that the reads
/// of the request have (`auto_timeout`), until the replica shows what the request depends on. Where it does not, or the
/// request has written in a transaction that is open, it is the primary's turn, and that is counted
/// (`reads_at_primary`). A replica whose host refuses, or has no address, is not waited for. A request that was sent to
/// the primary is sent there until it ends; one that goes on for more than 30 s goes back once the replica shows what
/// the primary has by then. In a dry run, and where the library is off, reads go to the replica.
///
///     auto& shop = antipode::RouteReads("shop") == antipode::ReadsFrom::kReplica ? replica : primary;
///
/// Throws ConfigurationError where this process has no client of the primary, or several replicas.
ANTIPODE_EXPORT ReadsFrom RouteReads(const std::string& datastore);

/// Promises that a branch of this request will write to a datastore, and enters that into the current scope.
ANTIPODE_EXPORT Promise MakePromise(const std::string& datastore, Seconds expires_in);
/// Gives a promise up for good; false where it was fulfilled before. Throws ConfigurationError, or Unreachable.
ANTIPODE_EXPORT bool Abandon(const Promise& promise, Seconds timeout = Seconds(5));

}  // namespace antipode
