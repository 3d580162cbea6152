// What is known of a server as long as its process lives. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mysql/gtid_set.h"

namespace antipode::mysql {

/// Which of the two families a server belongs to.
enum class Flavor { kMySql, kMariaDb };

/// Values by the names of columns or variables; NULL is the empty text.
using Row = std::map<std::string, std::string>;
/// Of a name that is not there, the empty text.
const std::string& In(const Row& row, const std::string& name);

/// The family of a server of a version.
Flavor FlavorOf(std::string_view version);

struct Facts {
  Flavor flavor = Flavor::kMySql;
  std::string server;  ///< Its incarnation.
  std::string uuid;    ///< MySQL's `server_uuid`.
  std::uint64_t server_id = 0;
  bool replica_status = false;          ///< Whether it knows `SHOW REPLICA STATUS`.
  bool strict = false;                  ///< MariaDB's `gtid_strict_mode`.
  bool group = false;                   ///< Whether it is a member of a group.
  std::uint64_t group_block = 0;        ///< How many numbers such a member is given at once.
  GtidSet executed;                     ///< MySQL's `gtid_executed` at that moment.
  std::vector<std::string> problems;    ///< What to configure before anybody can wait for positions there.
  std::vector<std::string> unnumbered;  ///< What to configure before its own writes have positions.
  std::string proxied;                  ///< Why another server may be read than the one that answers; else empty.
  std::vector<std::string> filters;     ///< What its replication leaves out, as far as its variables say.

  /// What a server's variables make of it; `started` says when its process did. Throws NotGtids.
  static Facts Of(const Row& variables, const std::string& started);
  /// Why its writes have no positions; empty where they have.
  [[nodiscard]] std::vector<std::string> Lacking() const;
  /// Throws ConfigurationError, which names what to change, where nobody can wait for positions.
  void Require(const std::string& datastore) const;
};

/// The filters among variables, or columns of the status of replication.
std::vector<std::string> FiltersIn(const Row& settings);
/// Texts in one line; what is empty is left out.
std::string Joined(const std::vector<std::string>& texts);

}  // namespace antipode::mysql
