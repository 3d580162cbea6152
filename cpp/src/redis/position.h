// Where a Redis server stands, and what that shows of writes and promises. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/redis_position.h"
#include "antipode/shim.h"

namespace antipode::redis {

/// The records of promises, and the replicated hash in which writers keep where earlier logs ended.
inline constexpr std::string_view kFulfilled = "fulfilled";
inline constexpr std::string_view kAbandoned = "abandoned";
inline constexpr std::string_view kLogHistory = "antipode:log";

/// Whether a server that answers with this error may answer otherwise later.
bool IsPassing(std::string_view error);

/// Where earlier logs ended, as read from log histories; facts never change. Thread-safe.
class LogHistory {
 public:
  [[nodiscard]] std::map<std::string, std::uint64_t> Of(const std::string& log) const;
  /// Takes over what a server on `log` has of another one; what is no number says nothing.
  void Learn(const std::string& log, const std::string& earlier, std::string_view end);

 private:
  mutable std::mutex lock_;
  std::map<std::string, std::map<std::string, std::uint64_t>> ends_;
};

using Records = std::map<Promise, std::optional<std::string>>;

/// What a server shows. `process` names it, as far as it is known.
Observation Shown(const ServerState& state, const std::string& process, const std::set<WriteId>& writes,
                  const LogHistory& history, const Records& records);
/// The logs that the log history should be asked about.
std::set<std::string> UnknownLogs(const Observation& shown);
/// An observation as it counts for one read that waits: a server that lacks any of it may lack the log history, too.
Observation Patient(Observation shown);

}  // namespace antipode::redis
