// Positions of a replica set: what replies name, and what a member's state proves. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "antipode/outcomes.h"
#include "antipode/write_id.h"
#include "mongodb/bson.h"

namespace antipode::mongodb {

/// A place in an oplog; the entry that initiated the set is of term -1.
struct OpTime {
  std::int64_t term = -1;
  std::uint64_t version = 0;
};
inline bool operator<=(const OpTime& a, const OpTime& b) {
  return std::tie(a.term, a.version) <= std::tie(b.term, b.version);
}

/// Where one member of a replica set stands.
struct ServerState {
  std::string set_name;
  OpTime applied;    ///< The last entry that it applied: what reads with the concern `local` show.
  OpTime committed;  ///< The last that it knows a majority to have, never beyond `applied`.
  bool primary = false;
  std::uint64_t initiated_s = 0;  ///< Unix second in which the set was initiated; 0 where not reported.
  std::string incarnation;        ///< The server's process, as far as reported, and its rollback id.
  std::uint64_t heard = 0;        ///< The latest version that it has heard of.

  [[nodiscard]] const OpTime& Shown(bool majority) const { return majority ? committed : applied; }
};

/// What a reply says of positions.
struct Told {
  std::optional<OpTime> written;           ///< `opTime`.
  std::optional<std::uint64_t> operation;  ///< `operationTime`.
  std::optional<ServerState> state;        ///< Where the server stood after the command, which asked for it.
};

/// A log and a version in it.
using Position = std::pair<std::string, std::uint64_t>;

/// With these fields a command's reply says where the server stands.
Doc& AskingWhere(Doc& command);
/// What the reply to `hello` says; none where the server has no data to read now. Throws ConfigurationError where it
/// is a mongos, or no member of a set.
std::optional<ServerState> StateOfHello(const bson_t& reply);
/// What a reply of a member of the set says.
Told ToldBy(const bson_t& reply, const std::string& set_name);

/// What a write is named, where its reply says it: `majority` where its concern was that, and was met.
std::optional<Position> WritePosition(const Told& told, const std::string& set_name, bool majority);
/// What covers a read.
std::optional<Position> ReadPosition(const Told& told, const std::string& set_name, bool majority);
/// What covers all that a server shows to reads with the concern `local`.
Position LocalPosition(const ServerState& state, std::optional<std::uint64_t> operation = std::nullopt);
/// Whether a key names a log of this set.
bool IsLogOf(const std::string& key, const std::string& set_name);

/// The oplog of the server that is checked.
class Oplog {
 public:
  virtual ~Oplog() = default;
  /// Its first entry at or after a version; none where there is none, or it may not be read.
  virtual std::optional<OpTime> FirstFrom(std::uint64_t version) = 0;
};

/// What became of positions of earlier terms: facts that hold for every member and for ever. Thread-safe.
class LogHistory {
 public:
  enum class Fate { kSurvived, kLost, kUnknown };
  /// What became of a write of a term that is over; none where it is not settled yet.
  std::optional<Fate> Of(const ServerState& state, std::int64_t term, const WriteId& write, Oplog& oplog);

 private:
  struct Term {
    std::optional<std::uint64_t> survived_to;
    std::optional<std::uint64_t> lost_from;
    std::set<std::uint64_t> unknown;
  };
  using Key = std::tuple<std::string, std::uint64_t, std::int64_t>;
  std::optional<Fate> Known(const Key& key, const WriteId& write);
  void Learn(const Key& key, std::uint64_t version, Fate fate);

  std::mutex lock_;
  std::map<Key, Term> terms_;
};

/// The outcome of a write at one server, and why.
std::pair<Status, std::string> Judge(const ServerState& state, const WriteId& write, bool majority, LogHistory& history,
                                     Oplog& oplog);

}  // namespace antipode::mongodb
