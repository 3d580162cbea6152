#include "mysql/session.h"

namespace antipode::mysql {
namespace {

/// Asked first: ProxySQL keeps a session that named a `@@` variable on one server of its group.
constexpr const char* kVariables =
    "SHOW GLOBAL VARIABLES WHERE @@server_id IS NOT NULL AND"
    " (Variable_name REGEXP '^replicate_(wild_)?(do|ignore)_(db|table)$' OR Variable_name IN"
    " ('version', 'server_uuid', 'server_id', 'server_uid', 'gtid_mode', 'log_bin', 'log_slave_updates',"
    " 'gtid_executed', 'gtid_strict_mode', 'group_replication_group_name',"
    " 'group_replication_gtid_assignment_block_size'))";

/// When the server's process started: both terms are of the statement's clock.
/// `CONNECTION_ID()` is never asked for alone: ProxySQL answers that itself.
constexpr const char* kStarted =
    "SELECT CAST(UNIX_TIMESTAMP() - VARIABLE_VALUE AS SIGNED) AS started, CONNECTION_ID() % 4294967296 AS session "
    "FROM ";

/// Nobody's uncommitted record of a promise may be seen, and no gap be locked.
constexpr const char* kCommitted = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// Whether MariaDB reports to the application's own connection the last GTID already, alone or as one of all variables.
constexpr const char* kTracked =
    "SELECT @@session_track_system_variables = '*' OR FIND_IN_SET('last_gtid', @@session_track_system_variables) > 0"
    " AS tracked";

/// Nothing but GTIDs is reported: what was reported to the client before must not be taken for news.
const char* Tracking(Flavor flavor) {
  if (flavor == Flavor::kMariaDb) {
    return "SET SESSION session_track_schema = OFF, session_track_system_variables = 'last_gtid'";
  }
  return "SET SESSION session_track_schema = OFF, session_track_system_variables = '',"
         " session_track_gtids = OWN_GTID";
}

/// Why another server may be read than the one that answers, which knows the connection by this number.
std::string Proxied(const Connection& connection, const std::string& session) {
  const std::string accepted = std::to_string(connection.Accepted() & 0xFFFFFFFFU);
  if (session.empty() || session == accepted) return "";
  return "a proxy accepted this connection (as number " + accepted + "; the server that answers knows it as " +
         session +
         "), so that the server that is read need not be the one that is asked: where all statements of a connection"
         " reach one server, as with a user of its own for each group of servers, state that by one_server = true";
}

Facts Detected(Connection& connection) {
  Row variables;
  for (const Row& each : connection.Rows(kVariables)) variables[In(each, "Variable_name")] = In(each, "Value");
  const std::string status = FlavorOf(In(variables, "version")) == Flavor::kMySql ? "performance_schema.global_status"
                                                                                  : "information_schema.GLOBAL_STATUS";
  const auto started = connection.Rows(kStarted + status + " WHERE VARIABLE_NAME = 'UPTIME'");
  if (started.empty()) return Facts::Of(variables, "");
  Facts facts = Facts::Of(variables, In(started.front(), "started"));
  facts.proxied = Proxied(connection, In(started.front(), "session"));
  return facts;
}

}  // namespace

Session::Session(const Address& address, double timeout_s, Runs& runs)
    : connection(address, timeout_s), facts(Detected(connection)) {
  runs.Learn(facts.executed, facts.group_block);
  connection.Ask(kCommitted);
  connection.Ask(Tracking(facts.flavor));
  connection.TakeGtids();
}

Session::Session(MYSQL* client, double timeout_s, Runs& runs)
    : connection(client), facts((connection.Within(timeout_s), Detected(connection))) {
  runs.Learn(facts.executed, facts.group_block);
  Track();
}

void Session::Track() {
  if (facts.flavor == Flavor::kMySql) {
    connection.Ask("SET SESSION session_track_gtids = OWN_GTID");
  } else if (In(connection.Rows(kTracked).at(0), "tracked") != "1") {
    connection.Ask(
        "SET SESSION session_track_system_variables = CONCAT_WS(',', NULLIF(@@session_track_system_variables, ''), "
        "'last_gtid')");
  }
  connection.TakeGtids();
}

}  // namespace antipode::mysql
