// One check of the server of a connection; a read is one, too.
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

/// What a transaction came to, and the position after it, where that was asked for and answered.
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

/// The question for the records of promises, and what its answer has. Throws Error.
Command RecordsQuestion(const std::set<Promise>& promises, const std::string& prefix);
Records RecordsIn(const std::set<Promise>& promises, const Reply& found);
/// The question where logs ended, and what a server on `log` answered to it.
Command HistoryQuestion(const std::set<std::string>& logs);
void Learn(LogHistory& history, const std::string& log, const std::set<std::string>& logs, const Reply& ends);
/// What `INFO replication` was answered with. Throws Error, or Unreachable where it may be answered later.
ServerState StateIn(const Reply& info);
/// What a check shows where the server does not say where it stands.
Observation Undecidable(const std::set<Dependency>& demanded, const std::string& cause);

std::string RecordKey(const Promise& promise, const std::string& prefix);
/// Looks; where a log is unknown, once more, together with the log history. Throws Lost, Error where the server
/// refuses, or Unreachable where it does so for now.
Looked Look(Connection& connection, const Asked& asked, LogHistory& history, const std::string& prefix,
            double timeout_s);

}  // namespace antipode::redis
