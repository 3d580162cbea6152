// What a server's state, asked for on the same connection, makes of a write or a read; and how that is entered.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "antipode/lineage.h"
#include "antipode/shim.h"
#include "redis/connection.h"
#include "redis/position.h"

namespace antipode::redis {

WriteId PositionOf(const std::string& datastore, const ServerState& state);

/// The log that ended when this server was promoted, and where; empty for none.
std::map<std::string, std::uint64_t> NotesOf(const ServerState& state);

/// How a shim and its clients enter what they wrote. Thread-safe.
class Entries {
 public:
  Entries(std::string datastore, bool keep_log_history)
      : datastore_(std::move(datastore)), keep_log_history_(keep_log_history) {}

  /// Enters a token into the current scope. Without a state after the write that is counted, and said with its cause;
  /// with one, the log history is noted on the same connection.
  void Enter(const Lineage& token, Connection& connection, const std::optional<ServerState>& after,
             const std::string& why, double timeout_s);

  /// What a child process begins anew.
  void Forked() {
    Renew(lock_);
    Renew(noted_);
  }

 private:
  void Note(Connection& connection, const ServerState& state, double timeout_s);

  std::string datastore_;
  bool keep_log_history_;
  std::mutex lock_;
  std::set<std::string> noted_;
};

}  // namespace antipode::redis
