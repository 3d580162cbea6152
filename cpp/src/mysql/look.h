// One check of a server: what it has, and of what is missing, whether it can still come. No I/O.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "antipode/shim.h"
#include "mysql/server_state.h"

namespace antipode::mysql {

/// A server and those above it, as they answer. Null is the server at hand. Each throws Error where that is refused
/// for good, and Unreachable where there is no answer now.
class Servers {
 public:
  virtual ~Servers();
  virtual std::shared_ptr<const ServerState> State(const Source* above) = 0;
  /// What a server follows.
  virtual std::vector<Source> Sources(const Source* above) = 0;
  /// The primaries that a server shows all of, following nobody: itself, and its group. MySQL's have their
  /// `server_uuid`, MariaDB's their `server_id`. All of a Galera cluster are the one primary that its cluster and its
  /// present view name; a node that was cut off from the cluster is none.
  virtual std::set<std::string> Primaries(const Source* above) = 0;
  /// What lets a user ask what a server follows.
  [[nodiscard]] virtual const char* Grants() const = 0;
};

/// What one check showed.
struct Looked {
  std::shared_ptr<const ServerState> state;
  std::map<WriteId, std::pair<Status, std::string>> judged;

  /// Adds what was seen of each write.
  void Tell(Observation& shown) const;
};

/// Looks once. In a group others may bring what the server lacks. Throws Error, or Unreachable.
Looked Look(Servers& servers, bool group, const std::set<WriteId>& writes);

}  // namespace antipode::mysql
