// One look at the server behind a connection; a read is one, too.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "redis/companion.h"
#include "redis/connection.h"
#include "redis/position.h"

namespace antipode::redis {

using Command = std::vector<std::string>;

/// What a transaction came to, and the position behind it, where that was asked for and answered.
struct Executed {
  std::optional<std::string> error;  ///< The first of the server's: nothing was done.
  std::optional<Reply> replies;      ///< Nil where another client changed what was watched.
  std::optional<ServerState> after;
  std::string why;  ///< There is no position.
};
/// Sends `commands` as one transaction. Throws Lost where that has no answer.
Executed Execute(Connection& connection, const std::vector<Command>& commands, bool positioned, double timeout_s);

/// What to ask a server for, all of it at one moment.
struct Asked {
  std::set<WriteId> writes;
  std::set<Promise> promises;
  std::optional<std::string> key;  ///< Whose value and companion are read.
};

/// What it answered.
struct Looked {
  Observation shown;
  Text value;
  Text companion;
  std::optional<ServerState> after;  ///< The position after the read.
};

std::string RecordKey(const Promise& promise, const std::string& prefix);
/// Looks; where a log is unknown, once more, together with the log history. Throws Lost, Error where the server
/// refuses, or Unreachable where it does so for now.
Looked Look(Connection& connection, const Asked& asked, LogHistory& history, const std::string& prefix,
            double timeout_s);

}  // namespace antipode::redis
