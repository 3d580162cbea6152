#include "redis/tokens.h"

#include "antipode/clock.h"
#include "antipode/observer.h"
#include "antipode/scope.h"

namespace antipode::redis {
namespace {

Lineage MarkedAs(const std::string& datastore, const char* reason) { return Lineage().Marked({datastore, reason}); }

}  // namespace

WriteId PositionOf(const std::string& datastore, const ServerState& state) {
  return {datastore, state.log, state.offset, SystemClock().Hour()};
}

Lineage OfWrite(const std::string& datastore, const std::optional<ServerState>& after) {
  if (!after) return MarkedAs(datastore, "unsampled");
  // Demoted between write and answer, or a writable replica, which no log has.
  if (!after->primary) return MarkedAs(datastore, "in_doubt");
  return Lineage({PositionOf(datastore, *after)});
}

Lineage OfUnknown(const std::string& datastore, const std::optional<ServerState>& before,
                  const std::optional<ServerState>& after) {
  const bool refused = before && after && before->RefusesWrites() && after->RefusesWrites();
  return refused ? Lineage() : OfWrite(datastore, after);
}

Lineage OfRead(const std::string& datastore, const std::optional<ServerState>& after) {
  if (!after || after->BeingReplaced()) return MarkedAs(datastore, "unsampled");
  WriteId covering = PositionOf(datastore, *after);
  covering.covering = true;
  return Lineage({covering});
}

std::map<std::string, std::uint64_t> NotesOf(const ServerState& state) {
  if (!state.primary || state.former_log.empty() || state.former_end == 0) return {};
  return {{state.former_log, state.former_end - 1}};
}

void Entries::Enter(const Lineage& token, Connection& connection, const std::optional<ServerState>& after,
                    const std::string& why, double timeout_s) {
  if (after) {
    Note(connection, *after, timeout_s);
  } else {
    Count("uncovered_write", datastore_);
    WarnOnce("uncovered_write", datastore_, why, "a write to '" + datastore_ + "' has no position: " + why);
  }
  for (const WriteId& write : token.writes()) RecordWrite(write);
  for (const Incomplete& mark : token.incomplete()) MarkIncomplete(mark.subject, mark.reason);
}

void Entries::Note(Connection& connection, const ServerState& state, double timeout_s) {
  const auto notes = NotesOf(state);
  if (!keep_log_history_ || notes.empty()) return;
  {
    const std::lock_guard guard(lock_);
    if (!noted_.insert(state.log).second) return;
  }
  Count("log_history_noted", datastore_);
  try {
    for (const auto& [log, end] : notes) {
      connection.Ask({"HSET", std::string(kLogHistory), log, std::to_string(end)}, timeout_s);
    }
  } catch (const Lost&) {
    // The write is done; replicas learn of the log from another writer.
  }
}

}  // namespace antipode::redis
