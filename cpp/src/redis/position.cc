#include "redis/position.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace antipode::redis {
namespace {

constexpr std::size_t kMostLogs = 64;
constexpr std::size_t kMostDigits = 18;

std::optional<std::uint64_t> NumberIn(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::map<std::string, std::string, std::less<>> FieldsOf(std::string_view info) {
  std::map<std::string, std::string, std::less<>> fields;
  while (!info.empty()) {
    const std::size_t end = std::min(info.find('\n'), info.size());
    std::string_view line = info.substr(0, end);
    info.remove_prefix(std::min(end + 1, info.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && colon > 0) {
      fields[std::string(line.substr(0, colon))] = std::string(line.substr(colon + 1));
    }
  }
  return fields;
}

using Judged = std::pair<Status, std::string>;

Judged Judge(const ServerState& state, const std::string& log, std::uint64_t offset,
             const std::map<std::string, std::uint64_t>& ends) {
  if (state.BeingReplaced()) return {Status::kNotYet, "the replica's data is being replaced by a full resync"};
  if (log == state.log) {
    if (offset <= state.offset) return {Status::kVisible, ""};
    return {Status::kNotYet, "at offset " + std::to_string(state.offset)};
  }
  if (log == state.former_log && offset < state.former_end) return {Status::kVisible, ""};
  if (const auto end = ends.find(log); end != ends.end()) {
    if (offset > end->second) {
      return {Status::kLost, log + " ended at " + std::to_string(end->second) + " when a replica was promoted"};
    }
    // Offsets go on where the earlier log ended, so the present offset decides.
    return {offset <= state.offset ? Status::kVisible : Status::kNotYet, "by log history"};
  }
  if (state.primary && log == state.former_log) {
    const std::uint64_t end = state.former_end == 0 ? 0 : state.former_end - 1;
    return {Status::kLost, "this server was promoted when it had " + log + " up to " + std::to_string(end)};
  }
  if (!state.primary && !state.link_up) {
    return {Status::kNotYet, "the replica has lost its primary and may still learn of this log"};
  }
  return {Status::kUnknownLog, "the server is on " + state.log};
}

/// Whether a server follows the primary of a log now, or is that primary.
Judged JudgePrimary(const ServerState& state, const std::string& log) {
  if (!state.primary && (state.syncing || !state.link_up)) {
    return {Status::kNotYet, "the replica is not connected to its primary"};
  }
  if (log == state.log) return {Status::kVisible, ""};
  return {Status::kUnknownLog, "the server is on " + state.log + ": it does not follow the primary of " + log +
                                   ", which was asked for its position and may have been replaced"};
}

Judged JudgeText(const ServerState& state, const WriteId& write) {
  if (write.key == kPrimaryKey) return JudgePrimary(state, std::get<std::string>(write.version));
  return {Status::kUndecidable, "it is no position of a Redis log"};
}

Status StatusOf(const std::optional<std::string>& record) {
  if (record == kFulfilled) return Status::kVisible;
  return record == kAbandoned ? Status::kAbandoned : Status::kNotYet;
}

}  // namespace

std::optional<ServerState> StateOf(std::string_view info) {
  const auto fields = FieldsOf(info);
  const auto field = [&](std::string_view name, std::string_view otherwise) {
    const auto found = fields.find(name);
    return found == fields.end() ? std::string(otherwise) : found->second;
  };
  ServerState state;
  const std::string role = field("role", "");
  state.primary = role == "master";
  state.log = field("master_replid", "");
  const auto offset = NumberIn(field(state.primary ? "master_repl_offset" : "slave_repl_offset", ""));
  if (role.empty() || state.log.empty() || !offset) return std::nullopt;
  state.offset = *offset;
  state.former_log = field("master_replid2", "");
  if (state.former_log.find_first_not_of('0') == std::string::npos) state.former_log.clear();
  state.former_end = NumberIn(field("second_repl_offset", "")).value_or(0);
  state.link_up = field("master_link_status", "") == "up";
  state.syncing = field("master_sync_in_progress", "0") != "0";
  state.read_only = field("slave_read_only", "0") != "0";
  state.numbering = field("repl_backlog_active", "1") != "0";
  return state;
}

bool IsPassing(std::string_view error) {
  static constexpr std::array<std::string_view, 3> kPassing{"BUSY", "LOADING", "MASTERDOWN"};
  return std::any_of(kPassing.begin(), kPassing.end(),
                     [&](std::string_view each) { return error.substr(0, each.size()) == each; });
}

std::map<std::string, std::uint64_t> LogHistory::Of(const std::string& log) const {
  const std::lock_guard guard(lock_);
  const auto found = ends_.find(log);
  return found == ends_.end() ? std::map<std::string, std::uint64_t>() : found->second;
}

void LogHistory::Learn(const std::string& log, const std::string& earlier, std::string_view end) {
  const auto number = end.size() <= kMostDigits ? NumberIn(end) : std::nullopt;
  if (!number) return;
  const std::lock_guard guard(lock_);
  if (ends_.size() >= kMostLogs && ends_.count(log) == 0) ends_.clear();
  ends_[log][earlier] = *number;
}

Observation Shown(const ServerState& state, const std::string& process, const std::set<WriteId>& writes,
                  const LogHistory& history, const Records& records) {
  Observation shown;
  shown.server = process.empty() ? state.log : process + "/" + state.log;
  const auto ends = history.Of(state.log);
  for (const WriteId& write : writes) {
    const auto* offset = std::get_if<std::uint64_t>(&write.version);
    const auto [status, cause] = offset == nullptr ? JudgeText(state, write) : Judge(state, write.key, *offset, ends);
    shown.statuses[write] = status;
    if (!cause.empty()) shown.causes[write] = cause;
  }
  for (const auto& [promise, record] : records) {
    shown.promises[promise] = state.BeingReplaced() ? Status::kNotYet : StatusOf(record);
  }
  return shown;
}

Observation Shown(const ServerState& state, const std::set<WriteId>& writes) {
  return Shown(state, "", writes, LogHistory(), {});
}

std::set<std::string> UnknownLogs(const Observation& shown) {
  std::set<std::string> logs;
  for (const auto& [write, status] : shown.statuses) {
    if (status == Status::kUnknownLog && write.key != kPrimaryKey) logs.insert(write.key);
  }
  return logs;
}

Observation Patient(Observation shown) {
  const auto late = [](const auto& each) { return each.second == Status::kNotYet; };
  if (std::any_of(shown.statuses.begin(), shown.statuses.end(), late) ||
      std::any_of(shown.promises.begin(), shown.promises.end(), late)) {
    for (auto& [write, status] : shown.statuses) {
      if (status == Status::kUnknownLog) status = Status::kNotYet;
    }
  }
  return shown;
}

}  // namespace antipode::redis
