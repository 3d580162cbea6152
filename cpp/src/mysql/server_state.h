// What one server has, and what it follows. No I/O.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "antipode/write_id.h"
#include "mysql/gtid_set.h"
#include "mysql/mariadb_position.h"

namespace antipode::mysql {

class ServerState {
 public:
  explicit ServerState(bool writable) : writable_(writable) {}
  virtual ~ServerState();

  [[nodiscard]] bool writable() const { return writable_; }
  /// Whether a write is visible there; `replica` says whether the server may follow another.
  [[nodiscard]] virtual bool Has(const WriteId& write, bool replica) const = 0;
  /// Whether anything of a write's log is in the history.
  [[nodiscard]] virtual bool Knows(const WriteId& write) const = 0;
  /// Whether a key and version may be of a log of this kind of server.
  [[nodiscard]] virtual bool Names(const WriteId& write) const = 0;
  /// Whether the history went on without a write for good.
  [[nodiscard]] virtual bool Excludes(const WriteId& write) const = 0;
  /// How far it is on the way to a write, for people.
  [[nodiscard]] virtual std::uint64_t At(const WriteId& write) const = 0;
  /// Whether nothing is gone that it had in an earlier state of the same kind.
  [[nodiscard]] virtual bool Covers(const ServerState& earlier) const = 0;

 private:
  bool writable_;
};

class MySqlState final : public ServerState {
 public:
  /// `executed` is its `gtid_executed`, what is purged included.
  MySqlState(GtidSet executed, bool writable) : ServerState(writable), executed_(std::move(executed)) {}

  [[nodiscard]] bool Has(const WriteId& write, bool replica) const override;
  [[nodiscard]] bool Knows(const WriteId& write) const override;
  [[nodiscard]] bool Names(const WriteId& write) const override;
  [[nodiscard]] bool Excludes(const WriteId& write) const override;
  [[nodiscard]] std::uint64_t At(const WriteId& write) const override;
  [[nodiscard]] bool Covers(const ServerState& earlier) const override;

 private:
  GtidSet executed_;
};

class MariaDbState final : public ServerState {
 public:
  /// `applied` is its `gtid_slave_pos`, `logged` its `gtid_binlog_state`; where it is `strict` the numbers of a domain
  /// only rise.
  MariaDbState(MariaDbPosition applied, MariaDbPosition logged, bool writable, std::uint64_t server_id, bool strict)
      : ServerState(writable),
        applied_(std::move(applied)),
        logged_(std::move(logged)),
        server_id_(server_id),
        strict_(strict) {}

  [[nodiscard]] bool Has(const WriteId& write, bool replica) const override;
  [[nodiscard]] bool Knows(const WriteId& write) const override;
  [[nodiscard]] bool Names(const WriteId& write) const override;
  [[nodiscard]] bool Excludes(const WriteId& write) const override;
  [[nodiscard]] std::uint64_t At(const WriteId& write) const override;
  [[nodiscard]] bool Covers(const ServerState& earlier) const override;

 private:
  MariaDbPosition applied_;
  MariaDbPosition logged_;
  std::uint64_t server_id_;
  bool strict_;
};

/// Where a replica gets its writes from.
struct Source {
  std::string host;  ///< As the replica reaches it.
  std::uint16_t port = 0;
  std::string log;  ///< The log's own server: MySQL's UUID, MariaDB's id; empty before the first connection.
  std::variant<GtidSet, MariaDbPosition> received;  ///< What has come of each log, and may not be applied yet.
  std::string trouble;                              ///< What replication says is wrong; empty where nothing is.
  bool connected = true;                            ///< Whether the replica is connected to it.

  /// Whether a write is on its way: its own server is the source, or it has been received.
  [[nodiscard]] bool Brings(const WriteId& write) const;
};

}  // namespace antipode::mysql
