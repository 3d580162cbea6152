// The server of a session, and those above it, which are asked on connections of a moment.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "mysql/look.h"
#include "mysql/session.h"

namespace antipode::mysql {

/// Servers above that did not answer: checks are shared, and do not ask them again for a while. Thread-safe.
class Silent {
 public:
  /// Why one did not answer lately; none where it may be asked.
  std::optional<std::string> Cause(const std::string& server);
  void Note(const std::string& server, const std::string& cause);

 private:
  struct Failed {
    double at_s;
    std::string cause;
  };
  std::mutex lock_;
  std::map<std::string, Failed> failed_;
};

class AskedServers final : public Servers {
 public:
  /// For one check, which takes at most so many seconds.
  AskedServers(Session& session, const Address& address, Silent& silent, double timeout_s);

  std::shared_ptr<const ServerState> State(const Source* above) override;
  std::vector<Source> Sources(const Source* above) override;
  std::set<std::string> Primaries(const Source* above) override;
  [[nodiscard]] const char* Grants() const override;
  /// The state of replication of the server at hand. Throws as the others.
  std::vector<Row> Replication();

 private:
  std::vector<Row> Ask(const Source* above, const std::string& sql);
  [[nodiscard]] const char* Statement() const;
  [[nodiscard]] Source SourceIn(const Row& row) const;

  Session& session_;
  const Address& address_;
  Silent& silent_;
  double until_s_;
};

}  // namespace antipode::mysql
