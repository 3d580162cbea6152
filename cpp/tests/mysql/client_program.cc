// Instrumented connections of libmariadb to a primary and to a replica that lags:
// tests/integration/mysql/test_libmariadb.py.
#include <mysql.h>

#include "antipode/mysql_client.h"
#include "client_checks.h"
#include "forks.h"

namespace {

using namespace antipode::checks;

struct Account {
  std::string user;
  std::string password;
  std::string database;
};

struct Region : Server {
  Region(const char* address, const Account& of, antipode::ReadsFrom reads_from) : Server(address), account(of) {
    shim = antipode::mysql::Shim::Open("posts", host, port,
                                       {account.user, account.password, account.database, reads_from});
  }
  ~Region() { shim->Close(); }

  MYSQL* Connected() const {
    MYSQL* connection = mysql_init(nullptr);
    if (mysql_real_connect(connection, host.c_str(), account.user.c_str(), account.password.c_str(),
                           account.database.c_str(), port, nullptr, CLIENT_MULTI_STATEMENTS) == nullptr) {
      Check(false, mysql_error(connection));
    }
    return connection;
  }

  Account account;
  std::shared_ptr<antipode::mysql::Shim> shim;
};

struct Connection {
  explicit Connection(const Region& to) : region(to), native(to.Connected()), client(to.shim, native) {}
  ~Connection() { mysql_close(native); }

  const Region& region;
  MYSQL* native;
  antipode::mysql::Client client;
};

/// The first value of the present result; `none` without rows.
std::string First(Connection& on) {
  MYSQL_RES* rows = on.client.StoreResult();
  const MYSQL_ROW row = rows == nullptr ? nullptr : mysql_fetch_row(rows);
  std::string value = row == nullptr ? "none" : row[0] == nullptr ? "null" : row[0];
  mysql_free_result(rows);
  return value;
}

std::string Ask(Connection& on, const std::string& sql) {
  const int failed = on.client.Query(sql);
  Check(failed == 0, sql + ": " + on.client.ErrorText());
  return First(on);
}

/// What each statement enters, in a separate scope, and once only.
void Enters(Connection& on, const std::string& sql, std::size_t writes, const std::string& mark = "") {
  const antipode::ScopeGuard request;
  Ask(on, sql);
  while (on.client.NextResult() == 0) continue;
  Same(sql + " has " + std::to_string(antipode::Current().writes().size()), sql + " has " + std::to_string(writes));
  Holds(writes, mark);
}

void Held(Connection& near, Connection& far) {
  const antipode::ScopeGuard request;
  Ask(near, "REPLACE INTO words VALUES (1, 'held')");
  Check(near.client.AffectedRows() > 0, "counts stay the client's");
  Holds(1);
  BarrierAtRead();
  Same(Ask(far, "SELECT word FROM words WHERE id = 1"), "held");
  Ask(near, "DELETE FROM words WHERE id = 1");
  BarrierAtRead();
  Ask(far, "START TRANSACTION");
  Same(Ask(far, "SELECT word FROM words WHERE id = 1"), "none");
  Ask(far, "COMMIT");
}

void Writes(Connection& near, Connection&) {
  Enters(near, "INSERT INTO words VALUES (10, 'a')", 1);
  Enters(near, "UPDATE words SET word = 'a' WHERE id = 10", 0);
  Enters(near, "CREATE TABLE more (id INT)", 1);
  Enters(near, "DROP TABLE more", 1);
  Enters(near, "SELECT word FROM words", 0);
  Enters(near, "INSERT INTO words VALUES (11, 'b'); SELECT 1; DELETE FROM words WHERE id = 11", 1);
  Enters(near, "CALL adds(12)", 1);
  const antipode::ScopeGuard request;
  Check(near.client.Query("INSERT INTO words VALUES (10, 'again')") == 1062, "the server's number");
  Check(near.client.Errno() == 1062, "stays");
  Check(near.client.Query("INSERT INTO words VALUES (14, 'c'); SELECT * FROM nowhere") == 0, "the first is done");
  Check(near.client.NextResult() == 1146, "the second is not");
  Holds(1);
}

void Transactions(Connection& near, Connection&) {
  {
    const antipode::ScopeGuard request;
    Ask(near, "START TRANSACTION");
    Ask(near, "REPLACE INTO words VALUES (20, 'x')");
    Holds(0);
    Ask(near, "COMMIT");
    Holds(1);
    Ask(near, "START TRANSACTION");
    Ask(near, "REPLACE INTO words VALUES (20, 'y')");
    Ask(near, "ROLLBACK");
  }
  {
    const antipode::ScopeGuard request;
    Ask(near, "SET autocommit = 0");
    Ask(near, "REPLACE INTO words VALUES (20, 'z')");
    Holds(0);
    Ask(near, "SET autocommit = 1");
    Holds(1);
  }
  const antipode::ScopeGuard request;
  {
    Connection other(near.region);
    Ask(other, "START TRANSACTION");
    Ask(other, "REPLACE INTO words VALUES (21, 'x')");
  }
  Holds(0, "in_doubt");
}

void Prepared(Connection& near, Connection& far) {
  const antipode::ScopeGuard request;
  MYSQL_STMT* write = mysql_stmt_init(near.native);
  Check(near.client.Prepare(write, "REPLACE INTO words VALUES (30, 'p')") == 0, "prepares");
  Check(near.client.Execute(write) == 0, "writes");
  Holds(1);
  BarrierAtRead();
  MYSQL_STMT* read = mysql_stmt_init(far.native);
  Check(far.client.Prepare(read, "SELECT id FROM words WHERE id = 30") == 0, "prepares");
  Check(far.client.Execute(read) == 0, "reads");
  Check(mysql_stmt_num_rows(read) == 1, "what was waited for");
  mysql_stmt_close(write);
  mysql_stmt_close(read);
}

void Snapshots(Connection& near, Connection& far) {
  const antipode::ScopeGuard request;
  Ask(far, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  Ask(far, "START TRANSACTION");
  Ask(far, "SELECT COUNT(*) FROM words");
  Ask(near, "REPLACE INTO words VALUES (40, 's')");
  BarrierAtRead();
  Throws<antipode::StaleSnapshot>([&] { far.client.Query("SELECT word FROM words WHERE id = 40"); });
  Ask(far, "COMMIT");
  Same(Ask(far, "SELECT word FROM words WHERE id = 40"), "s");
  Ask(far, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  Ask(far, "START TRANSACTION");
  Ask(far, "SELECT COUNT(*) FROM words");
  Ask(near, "REPLACE INTO words VALUES (40, 't')");
  BarrierAtRead();
  Same(Ask(far, "SELECT word FROM words WHERE id = 40"), "t");
  Ask(far, "COMMIT");
}

/// Where the server does not report positions they are asked for; where a write has none it is marked.
void Untold(Connection& near, Connection&) {
  const bool mariadb = std::string(mysql_get_server_info(near.native)).find("MariaDB") != std::string::npos;
  const std::string off =
      mariadb ? "SET SESSION session_track_system_variables = ''" : "SET SESSION session_track_gtids = OFF";
  Enters(near, off + "; REPLACE INTO words VALUES (50, 'u')", 1);
  Enters(near, "REPLACE INTO words VALUES (50, 'v')", 1);
  Enters(near, "XA START 'x'; REPLACE INTO words VALUES (50, 'w'); XA END 'x'; XA PREPARE 'x'", 1, "in_doubt");
  Ask(near, "XA COMMIT 'x'");
  Enters(near, "XA START 'y'; REPLACE INTO words VALUES (50, 'w'); XA END 'y'", 0);
  Enters(near, "XA PREPARE 'y'", 0, "in_doubt");
  Ask(near, "XA COMMIT 'y'");
  if (mariadb) Enters(near, "INSERT INTO words VALUES (51, 'r') RETURNING word", 1);
  Check(near.client.Reset() == 0, "it begins anew");
  Enters(near, "REPLACE INTO words VALUES (50, 'x')", 1);
}

void Late(Connection& near, Connection& far) {
  const antipode::ScopeGuard request;
  Ask(near, "REPLACE INTO words VALUES (60, 'l')");
  BarrierAtRead(0.1);
  Throws<antipode::BarrierTimeout>([&] { far.client.Query("SELECT word FROM words WHERE id = 60"); });
  Same(Ask(far, "SELECT 1"), "1");
}

/// A proxy may send the read elsewhere than what the library asks.
void Proxied(Connection& near, Connection& far) {
  const antipode::ScopeGuard request;
  Ask(near, "REPLACE INTO words VALUES (70, 'p')");
  Ask(far, "SELECT 1");
  BarrierAtRead();
  Throws<antipode::ConfigurationError>([&] { far.client.Query("SELECT word FROM words WHERE id = 70"); });
}

/// What leaves while a transaction that wrote is open: a lint of a dry run, once here.
void Uncommitted(Connection& near, Connection& far) {
  const antipode::ScopeGuard request;
  const auto leaves = [] { return antipode::CurrentScope()->text(); };
  Ask(near, "START TRANSACTION");
  Ask(near, "SELECT word FROM words");
  leaves();
  Ask(far, "SELECT word FROM words");
  Ask(near, "REPLACE INTO words VALUES (80, 'u')");
  leaves();
  Ask(near, "SELECT word FROM words");
  Ask(far, "SELECT word FROM words");
  Ask(near, "COMMIT");
  leaves();
  Ask(near, "REPLACE INTO words VALUES (80, 'v')");
  leaves();
  Ask(near, "START TRANSACTION");
  Ask(near, "REPLACE INTO words VALUES (80, 'w')");
  Ask(near, "ROLLBACK");
  leaves();
}

/// The connection is gone: what was sent on it may have been done.
void Lost(Connection& near, Connection&) {
  for (const char* sql : {"REPLACE INTO words VALUES (70, 'k')", "SELECT word FROM words"}) {
    Connection victim(near.region);
    Ask(near, "KILL " + std::to_string(mysql_thread_id(victim.native)));
    const antipode::ScopeGuard request;
    Check(victim.client.Query(sql) >= 2000, "the client's number");
    Holds(0, sql[0] == 'R' ? "in_doubt" : "");
  }
}

/// A child process waits and reads over connections of its own, and its parent goes on.
void Forked(Connection& near, Connection& far) {
  for (const std::string& each : antipode::mysql::TableStatements()) Ask(near, each);
  Check(ForksWell(*near.region.shim, *far.region.shim), "both processes read what they wrote");
}

}  // namespace

int main(int, char** arguments) {
  const std::map<std::string, std::function<void(Connection&, Connection&)>> checks{
      {"held", Held},         {"writes", Writes},       {"transactions", Transactions},
      {"prepared", Prepared}, {"snapshots", Snapshots}, {"untold", Untold},
      {"late", Late},         {"lost", Lost},           {"uncommitted", Uncommitted},
      {"proxied", Proxied},   {"forked", Forked}};
  const Account account{arguments[3], arguments[4], arguments[5]};
  const Region there(arguments[1], account, antipode::ReadsFrom::kPrimary);
  const Region here(arguments[2], account, antipode::ReadsFrom::kReplica);
  Connection near(there);
  Connection far(here);
  checks.at(arguments[6])(near, far);
}
