#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "antipode/export.h"

namespace antipode {

/// What becomes of something that is no plain success.
enum class Policy { kRaise, kReport };

/// Whether barriers wait. With `kDryRun`, as with `kOff`, they return at once and everything is `excluded`; outcomes
/// say why, and nothing that is wrong with a barrier is an error. A process whose settings say `kDryRun` also records
/// where barriers are missing.
enum class Mode { kEnforce, kOff, kDryRun };

/// Whether a peer answers with lineages; `kAuto` is learnt from its answers.
enum class Answers { kAuto, kAlways, kNever };

/// Where reads of instrumented clients wait: where a barrier was called, or each alone for what its request depends
/// on.
enum class ReadBarriers { kExplicit, kAuto };

/// What becomes of a read that waited automatically and was not shown all of that.
enum class OnStale { kServe, kRaise };

/// The settings of this process. Each can also be given as `ANTIPODE_<NAME>` in the environment, where durations are
/// like `7d`, `12h` or seconds, and lists have commas.
struct Settings {
  Mode mode = Mode::kEnforce;
  std::chrono::duration<double> max_timeout{30};      ///< The longest that any barrier waits.
  std::size_t max_lineage_bytes = 1024;               ///< Most bytes of the member, `antipode=` included: 64 to 4,096.
  std::chrono::duration<double> horizon{7 * 86'400};  ///< After which an unknown log counts as aged.
  std::chrono::duration<double> max_promise{7 * 86'400};  ///< The longest that a promise may live.
  /// For how long a user's requests depend on what an earlier one wrote, where a session cookie carries it: longer than
  /// replication ever lags.
  std::chrono::duration<double> session_max_age{60};
  std::optional<Policy> on_unknown;  ///< None: as the specification says of unknown datastores.
  Policy on_incomplete = Policy::kRaise;
  ReadBarriers barriers = ReadBarriers::kExplicit;
  std::chrono::duration<double> auto_timeout{1};  ///< What reads of one request wait automatically, together.
  OnStale on_stale = OnStale::kServe;
  std::optional<Policy> on_unscoped;                  ///< None: writes report, barriers and checks raise.
  std::optional<std::set<std::string>> egress;        ///< Datastores that may be named outside; none: all.
  std::optional<std::set<std::string>> egress_hosts;  ///< Hosts that may get lineages; none: all.
  std::map<std::string, Answers> peers;               ///< Hosts, with a path or without, and whether they answer.
  std::size_t max_threads = 64;       ///< Of the library, to check servers: one for each datastore that is waited for.
  std::optional<std::string> region;  ///< Of this process: a dry run goes by it.
  std::optional<std::string> dry_run_dir;             ///< Where a dry run writes its records; none: it writes none.
  std::optional<std::set<std::string>> app_packages;  ///< Namespaces that are the application's, wherever they are.
};

/// The settings in force; the environment is read at the first call.
ANTIPODE_EXPORT Settings CurrentSettings();

/// Lets `settings` be in force. Throws ConfigurationError where a value is outside of what its setting takes.
ANTIPODE_EXPORT void Configure(const Settings& settings);

/// Whether `ANTIPODE_DISABLED=true` was in the environment as the process started: then nothing is sent, recorded or
/// waited for.
ANTIPODE_EXPORT bool Disabled() noexcept;

}  // namespace antipode
