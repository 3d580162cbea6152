// Looks at what a server has executed.
#pragma once

#include <memory>
#include <string>

#include "antipode/shim.h"
#include "mysql/inside.h"

namespace antipode::mysql {

/// Not pinned: positions can be reset under a live connection.
class MySqlEndpoint final : public Endpoint {
 public:
  /// Connects to a server where positions can be waited for. Throws Unreachable, Error where the server does not let
  /// this user in, or ConfigurationError where it has no positions, or several may answer.
  MySqlEndpoint(const std::string& datastore, Shim::Inside& inside, double timeout_s);

  Observation Observe(const std::set<WriteId>& writes, double timeout_s) override;
  Observation Promised(const std::set<Promise>& promises, double timeout_s) override;
  /// One whose user may not ask for the sources says whether it takes writes.
  bool IsReplica(double timeout_s) override;
  void Interrupt() override { session_->connection.Interrupt(); }

 private:
  [[nodiscard]] std::string Server() const;
  void Warn(const std::string& datastore, double timeout_s);

  Address address_;
  std::string promises_;
  Silent& silent_;
  std::unique_ptr<Session> session_;
  std::string caveat_;
  std::shared_ptr<const ServerState> before_;
  int resets_ = 0;  ///< How often positions were reset under the connection.
};

}  // namespace antipode::mysql
