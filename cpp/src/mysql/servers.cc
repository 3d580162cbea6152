#include "mysql/servers.h"

#include "antipode/clock.h"
#include "antipode/text.h"
#include "mysql/digits.h"

namespace antipode::mysql {
namespace {

/// How long asking a server above may take: the check that needs it is itself bounded.
constexpr double kAskS = 0.5;
/// For how long one that did not answer is not asked again.
constexpr double kQuietS = 2;
constexpr std::uint16_t kPort = 3306;
/// Who a server is, and which group it is in; needs no privilege.
constexpr const char* kIdentity =
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'group_replication_group_name')";
constexpr const char* kCluster =
    "SHOW GLOBAL STATUS WHERE Variable_name IN"
    " ('wsrep_cluster_status', 'wsrep_cluster_state_uuid', 'wsrep_cluster_conf_id')";
/// Whom a member of a group is in touch with; needs SELECT on that table.
constexpr const char* kMembers =
    "SELECT MEMBER_ID AS member FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'";

const std::string& SourceColumn(const Row& row, const std::string& name) {
  const auto found = row.find("Source_" + name);
  return found == row.end() ? In(row, "Master_" + name) : found->second;
}

Row Only(const std::vector<Row>& rows) { return rows.empty() ? Row() : rows.front(); }

}  // namespace

std::optional<std::string> Silent::Cause(const std::string& server) {
  const std::lock_guard guard(lock_);
  const auto found = failed_.find(server);
  if (found == failed_.end() || SystemClock().Now() - found->second.at_s >= kQuietS) return std::nullopt;
  return found->second.cause;
}

void Silent::Note(const std::string& server, const std::string& cause) {
  const std::lock_guard guard(lock_);
  failed_[server] = {SystemClock().Now(), cause};
}

AskedServers::AskedServers(Session& session, const Address& address, Silent& silent, double timeout_s)
    : session_(session), address_(address), silent_(silent), until_s_(SystemClock().Now() + timeout_s) {
  session.connection.Within(timeout_s);
}

std::shared_ptr<const ServerState> AskedServers::State(const Source* above) {
  const Facts& facts = session_.facts;
  if (facts.flavor == Flavor::kMySql) {
    const Row row = Only(Ask(above, "SELECT @@GLOBAL.gtid_executed AS executed, @@GLOBAL.read_only AS read_only"));
    return std::make_shared<MySqlState>(GtidSet::Parse(In(row, "executed")), In(row, "read_only") == "0");
  }
  const Row row = Only(Ask(above,
                           "SELECT @@GLOBAL.gtid_slave_pos AS applied, @@GLOBAL.gtid_binlog_state AS logged,"
                           " @@GLOBAL.read_only AS read_only"));
  return std::make_shared<MariaDbState>(MariaDbPosition::Parse(In(row, "applied")),
                                        MariaDbPosition::Parse(In(row, "logged")), In(row, "read_only") == "0",
                                        facts.server_id, facts.strict);
}

std::vector<Source> AskedServers::Sources(const Source* above) {
  std::vector<Source> sources;
  for (const Row& row : Ask(above, Statement())) sources.push_back(SourceIn(row));
  return sources;
}

std::set<std::string> AskedServers::Primaries(const Source* above) {
  const bool mysql = session_.facts.flavor == Flavor::kMySql;
  Row said;
  for (const Row& row : Ask(above, mysql ? kIdentity : kCluster)) said[In(row, "Variable_name")] = In(row, "Value");
  if (mysql) {
    std::set<std::string> primaries{text::Lower(In(said, "server_uuid"))};
    if (In(said, "group_replication_group_name").empty()) return primaries;
    for (const Row& row : Ask(above, kMembers)) primaries.insert(text::Lower(In(row, "member")));
    return primaries;
  }
  const std::string& status = In(said, "wsrep_cluster_status");
  if (status == "Primary") return {In(said, "wsrep_cluster_state_uuid") + ":" + In(said, "wsrep_cluster_conf_id")};
  if (!status.empty() && status != "Disconnected") return {};
  return {In(Only(Ask(above, "SELECT @@GLOBAL.server_id AS server_id")), "server_id")};
}

const char* AskedServers::Grants() const {
  return session_.facts.flavor == Flavor::kMySql ? "REPLICATION CLIENT" : "BINLOG MONITOR, REPLICA MONITOR";
}

std::vector<Row> AskedServers::Replication() { return Ask(nullptr, Statement()); }

const char* AskedServers::Statement() const {
  if (session_.facts.flavor == Flavor::kMariaDb) return "SHOW ALL SLAVES STATUS";
  return session_.facts.replica_status ? "SHOW REPLICA STATUS" : "SHOW SLAVE STATUS";
}

Source AskedServers::SourceIn(const Row& row) const {
  Source source;
  source.host = SourceColumn(row, "Host");
  source.port = static_cast<std::uint16_t>(NumberIn(SourceColumn(row, "Port")).value_or(kPort));
  const auto running = row.find("Replica_IO_Running");
  source.connected = (running == row.end() ? In(row, "Slave_IO_Running") : running->second) == "Yes";
  source.trouble = Joined({In(row, "Last_IO_Error"), In(row, "Last_SQL_Error")});
  if (session_.facts.flavor == Flavor::kMySql) {
    source.log = text::Lower(SourceColumn(row, "UUID"));
    source.received = GtidSet::Parse(In(row, "Retrieved_Gtid_Set"));
  } else {
    source.log = SourceColumn(row, "Server_Id");
    source.received = MariaDbPosition::Parse(In(row, "Gtid_IO_Pos"));
  }
  return source;
}

std::vector<Row> AskedServers::Ask(const Source* above, const std::string& sql) {
  if (above == nullptr) {
    try {
      return session_.connection.Rows(sql);
    } catch (const Error& error) {
      Refuse(error);
    }
  }
  if (until_s_ - SystemClock().Now() < kAskS) throw Unreachable("no time left to ask the source");
  Address there = address_;
  there.host = above->host;
  there.port = above->port;
  if (const auto cause = silent_.Cause(there.name())) throw Unreachable(*cause);
  try {
    Connection connection(there, kAskS);
    return connection.Rows(sql);
  } catch (const Error& error) {
    try {
      Refuse(error);
    } catch (const Unreachable& unreachable) {
      silent_.Note(there.name(), unreachable.what());
      throw;
    }
  }
}

}  // namespace antipode::mysql
