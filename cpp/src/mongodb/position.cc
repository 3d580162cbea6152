#include "mongodb/position.h"

#include <algorithm>
#include <cstdlib>

#include "antipode/errors.h"

namespace antipode::mongodb {
namespace {

constexpr unsigned kIncrementBits = 32;
constexpr std::size_t kMostTerms = 256;

std::uint64_t SecondsOf(std::uint64_t version) { return version >> kIncrementBits; }

std::string LogKey(const std::string& set_name, std::optional<std::int64_t> term) {
  return term ? set_name + "." + std::to_string(*term) : set_name;
}

/// The term of a log of this set, none inside for what a majority has; none where the key names no log of it.
std::optional<std::optional<std::int64_t>> TermOf(const std::string& key, const std::string& set_name) {
  if (key == set_name) return std::optional<std::int64_t>();
  const std::size_t dot = key.rfind('.');
  if (dot == std::string::npos || key.compare(0, dot, set_name) != 0) return std::nullopt;
  const std::string term = key.substr(dot + 1);
  if (term.empty() || term.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  // What is beyond 63 bits becomes the largest, which no set reaches.
  return std::optional<std::int64_t>(std::strtoll(term.c_str(), nullptr, 10));
}

std::optional<OpTime> OpTimeAt(const bson_t& reply, const std::string& path) {
  const auto term = IntAt(reply, (path + ".t").c_str());
  const auto version = StampAt(reply, (path + ".ts").c_str());
  if (!term || *term < 0 || !version) return std::nullopt;
  return OpTime{*term, *version};
}

OpTime Least(const OpTime& a, const OpTime& b) { return a <= b ? a : b; }

/// The id of the set is an ObjectId that its first primary made, with its time of creation in front.
std::uint64_t InitiatedS(const bson_t& reply) {
  const auto found = At(reply, "$replData.replicaSetId");
  if (!found || !BSON_ITER_HOLDS_OID(&found->at)) return 0;
  return static_cast<std::uint64_t>(bson_oid_get_time_t(bson_iter_oid(&found->at)));
}

std::string RollbackId(const bson_t& reply) {
  const auto found = IntAt(reply, "$oplogQueryData.rbid");
  return found ? std::to_string(*found) : "";
}

std::string ProcessOf(const bson_t& reply) {
  const auto found = At(reply, "topologyVersion.processId");
  if (!found || !BSON_ITER_HOLDS_OID(&found->at)) return "";
  char text[25];
  bson_oid_to_string(bson_iter_oid(&found->at), text);
  return text;
}

std::pair<Status, std::string> Reached(std::uint64_t version, std::uint64_t shown, const std::string& what) {
  if (shown >= version) return {Status::kVisible, ""};
  return {Status::kNotYet, "the server shows " + what + " up to second " + std::to_string(SecondsOf(shown))};
}

}  // namespace

Doc& AskingWhere(Doc& command) { return command.Add("$replData", 1).Add("$oplogQueryData", 1); }

std::optional<ServerState> StateOfHello(const bson_t& reply) {
  if (TextAt(reply, "msg") == "isdbgrid") {
    throw ConfigurationError(
        "the server is a mongos, and sharded clusters are not supported: the position of one shard's log says nothing "
        "about the shard that is read; connect to one replica set");
  }
  const std::string set_name = TextAt(reply, "setName").value_or("");
  if (set_name.empty() && !TrueAt(reply, "isreplicaset")) {
    throw ConfigurationError(
        "the server is no member of a replica set, so that its writes have no positions; start it with --replSet (one "
        "member will do)");
  }
  const auto applied = OpTimeAt(reply, "lastWrite.opTime");
  const bool primary = TrueAt(reply, "isWritablePrimary");
  const bool readable = (primary || TrueAt(reply, "secondary")) && !TrueAt(reply, "arbiterOnly");
  if (set_name.empty() || !applied || !readable) return std::nullopt;
  const OpTime committed = OpTimeAt(reply, "lastWrite.majorityOpTime").value_or(OpTime());
  const std::string incarnation = ProcessOf(reply) + "/" + RollbackId(reply);
  return ServerState{set_name,
                     *applied,
                     Least(*applied, committed),
                     primary,
                     InitiatedS(reply),
                     incarnation,
                     StampAt(reply, "$clusterTime.clusterTime").value_or(0)};
}

Told ToldBy(const bson_t& reply, const std::string& set_name) {
  Told told{OpTimeAt(reply, "opTime"), StampAt(reply, "operationTime"), std::nullopt};
  const auto applied = OpTimeAt(reply, "$oplogQueryData.lastOpApplied");
  const auto committed = OpTimeAt(reply, "$replData.lastOpCommitted");
  if (applied && committed) {
    told.state = ServerState{set_name,
                             *applied,
                             Least(*applied, *committed),
                             TrueAt(reply, "$replData.isPrimary"),
                             InitiatedS(reply),
                             "/" + RollbackId(reply),
                             StampAt(reply, "$clusterTime.clusterTime").value_or(0)};
  }
  return told;
}

std::optional<Position> WritePosition(const Told& told, const std::string& set_name, bool majority) {
  std::optional<OpTime> written = told.written;
  if (!written && told.operation) {
    // After a write this is the write's own timestamp.
    if (majority) return Position(set_name, *told.operation);
    if (told.state && told.state->primary) written = OpTime{told.state->applied.term, *told.operation};
  }
  if (!written) return std::nullopt;
  const bool by_majority = majority || (told.state && *written <= told.state->committed);
  return Position(by_majority ? set_name : LogKey(set_name, written->term), written->version);
}

std::optional<Position> ReadPosition(const Told& told, const std::string& set_name, bool majority) {
  if (!told.operation) return std::nullopt;
  if (majority) return Position(set_name, *told.operation);
  if (!told.state) return std::nullopt;
  ServerState state = *told.state;
  state.set_name = set_name;
  return LocalPosition(state, told.operation);
}

Position LocalPosition(const ServerState& state, std::optional<std::uint64_t> operation) {
  // At a primary entries are visible before they count as applied: only the cluster's time is after all of them.
  const bool falls_short = state.primary || !operation;
  const std::uint64_t covering = falls_short ? std::max(state.heard, state.applied.version) : *operation;
  if (covering <= state.committed.version) return {state.set_name, covering};
  return {LogKey(state.set_name, state.applied.term), covering};
}

bool IsLogOf(const std::string& key, const std::string& set_name) { return TermOf(key, set_name).has_value(); }

std::optional<LogHistory::Fate> LogHistory::Of(const ServerState& state, std::int64_t term, const WriteId& write,
                                               Oplog& oplog) {
  const Key key{state.set_name, state.initiated_s, term};
  if (const auto known = Known(key, write)) return known;
  const std::uint64_t version = std::get<std::uint64_t>(write.version);
  // The first entry at or after the version decides: where it is of the same term, the write is in this log, as is all
  // that its primary wrote before. Else it is not, and a log with a committed entry of a later term never has it.
  const auto first = oplog.FirstFrom(version);
  if (first && first->term == term) {
    if (version > state.committed.version) return std::nullopt;
    Learn(key, version, Fate::kSurvived);
  } else if (state.committed.term > term) {
    const auto oldest = oplog.FirstFrom(0);
    const bool lost = oldest && oldest->version <= version && !write.covering;
    Learn(key, version, lost ? Fate::kLost : Fate::kUnknown);
  }
  return Known(key, write);
}

std::optional<LogHistory::Fate> LogHistory::Known(const Key& key, const WriteId& write) {
  const std::lock_guard guard(lock_);
  const auto found = terms_.find(key);
  if (found == terms_.end()) return std::nullopt;
  const Term& term = found->second;
  const std::uint64_t version = std::get<std::uint64_t>(write.version);
  if (term.survived_to && version <= *term.survived_to) return Fate::kSurvived;
  if (term.unknown.count(version) > 0) return Fate::kUnknown;
  if (!term.lost_from || version < *term.lost_from) return std::nullopt;
  // What a read covered may be less than its position: only that of a write is an entry.
  return write.covering ? Fate::kUnknown : Fate::kLost;
}

void LogHistory::Learn(const Key& key, std::uint64_t version, Fate fate) {
  const std::lock_guard guard(lock_);
  if (terms_.size() >= kMostTerms) terms_.clear();
  Term& term = terms_[key];
  if (fate == Fate::kSurvived) {
    term.survived_to = std::max(term.survived_to.value_or(0), version);
  } else if (fate == Fate::kLost) {
    term.lost_from = std::min(term.lost_from.value_or(version), version);
  } else {
    if (term.unknown.size() >= kMostTerms) term.unknown.clear();
    term.unknown.insert(version);
  }
}

std::pair<Status, std::string> Judge(const ServerState& state, const WriteId& write, bool majority, LogHistory& history,
                                     Oplog& oplog) {
  const auto* version = std::get_if<std::uint64_t>(&write.version);
  if (version == nullptr) return {Status::kUndecidable, "it is no position of a MongoDB log"};
  const auto log = TermOf(write.key, state.set_name);
  if (!log) return {Status::kUnknownLog, "the server is a member of '" + state.set_name + "'"};
  if (SecondsOf(*version) < state.initiated_s) {
    return {Status::kUnknownLog, "the replica set was initiated after this position"};
  }
  const OpTime& shown = state.Shown(majority);
  if (!*log) return Reached(*version, state.committed.version, "a majority's entries");
  const std::int64_t term = **log;
  const std::string named = std::to_string(term);
  if (term == shown.term) return Reached(*version, shown.version, "term " + named);
  if (term > shown.term) return {Status::kNotYet, "the server has applied nothing of term " + named};
  const auto fate = history.Of(state, term, write, oplog);
  if (!fate) return {Status::kNotYet, "nothing of a term after " + named + " is committed yet"};
  switch (*fate) {
    case LogHistory::Fate::kSurvived:
      return Reached(*version, state.committed.version, "a majority's entries");
    case LogHistory::Fate::kLost:
      return {Status::kLost, "rolled back: term " + named + " ended before it"};
    case LogHistory::Fate::kUnknown:
      break;
  }
  return {Status::kUnknownLog, "the oplog does not show what became of this position of an earlier term"};
}

}  // namespace antipode::mongodb
