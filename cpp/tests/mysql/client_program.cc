// Instrumented connections of libmariadb to a primary and to a replica that lags:
// tests/integration/mysql/test_libmariadb.py.
#include <mysql.h>

#include <optional>

#include "antipode/mysql_client.h"
#include "antipode/observer.h"
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
  Region(const char* address, const Account& of, antipode::ReadsFrom reads_from, bool one_server)
      : Server(address), account(of) {
    antipode::mysql::Options options{account.user, account.password, account.database, reads_from};
    options.one_server = one_server;
    shim = antipode::mysql::Shim::Open("posts", host, port, options);
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

bool IsMariaDb(Connection& on) {
  return std::string(mysql_get_server_info(on.native)).find("MariaDB") != std::string::npos;
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
  // Before its rows MariaDB says that no transaction is open.
  Ask(far, "HELP 'contents'");
  Throws<antipode::StaleSnapshot>([&] { far.client.Query("SELECT word FROM words WHERE id = 40"); });
  Ask(far, "COMMIT");
  Same(Ask(far, "SELECT word FROM words WHERE id = 40"), "s");
  // What locks what it reads, and what is refused before it reads, takes none.
  Ask(far, "START TRANSACTION");
  Ask(far, "SELECT 1 FOR UPDATE");
  Check(far.client.Query("SELECT no_such_column FROM words") == 1054, "there is no such column");
  Ask(near, "REPLACE INTO words VALUES (40, 'l')");
  BarrierAtRead();
  Same(Ask(far, "SELECT word FROM words WHERE id = 40"), "l");
  Ask(far, "COMMIT");
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
  const bool mariadb = IsMariaDb(near);
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

/// Through a proxy with a group of servers, each connection stays with one of them.
void Grouped(Connection& near, Connection& far) {
  for (const std::string id : {"90", "91", "92", "93", "94", "95"}) {
    Connection own(far.region);
    const antipode::ScopeGuard request;
    Ask(near, "REPLACE INTO words VALUES (" + id + ", 'g')");
    antipode::Barrier(Patient());
    Same(Ask(own, "SELECT word FROM words WHERE id = " + id), "g");
  }
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

/// What a prepared procedure wrote is known once its last result was read, by the client or past it.
void Called(Connection& near, Connection& far) {
  {
    const antipode::ScopeGuard request;
    MYSQL_STMT* call = mysql_stmt_init(near.native);
    Check(near.client.Prepare(call, "CALL adds(90)") == 0, "prepares");
    Check(near.client.Execute(call) == 0, "calls");
    Check(mysql_stmt_num_rows(call) == 1, "rows are the client's");
    Holds(0, "in_doubt");
    Check(!antipode::Lineage::Deserialize(antipode::Serialize()).incomplete().empty(), "what leaves says so");
    Check(near.client.NextResult(call) == 0, "the last result");
    Check(near.client.NextResult(call) == -1, "there is no other");
    Holds(1);
    mysql_stmt_close(call);
    BarrierAtRead();
    Same(Ask(far, "SELECT word FROM words WHERE id = 90"), "added");
  }
  const antipode::ScopeGuard request;
  MYSQL_STMT* call = mysql_stmt_init(near.native);
  Check(near.client.Prepare(call, "CALL adds(91)") == 0, "prepares");
  Check(near.client.Execute(call) == 0, "calls");
  mysql_stmt_close(call);  // It reads what is left.
  Same(Ask(near, "SELECT 1"), "1");
  Holds(1);
  MYSQL* native = near.region.Connected();
  {
    antipode::mysql::Client other(near.region.shim, native);
    const antipode::ScopeGuard given_up;
    call = mysql_stmt_init(native);
    Check(other.Prepare(call, "CALL adds(92)") == 0, "prepares");
    Check(other.Execute(call) == 0, "calls");
    Check(other.Reset() == 0, "it begins anew");
    Holds(0, "in_doubt");
    mysql_stmt_close(call);
  }
  mysql_close(native);
}

std::uint64_t UnknownFunctions() {
  const auto counts = antipode::Metrics();
  const auto found = counts.find({"unknown_function", "posts"});
  return found == counts.end() ? 0 : found->second;
}

/// What statements leave in a table is in the lineage, and is there for who waits.
void Leaves(Connection& near, Connection& far, const std::vector<std::string>& statements, const std::string& shown) {
  const antipode::ScopeGuard request;
  for (const std::string& each : statements) near.client.Query(each);
  Check(antipode::Current().writes().size() == 1, statements.front() + " enters one position");
  BarrierAtRead();
  Same(Ask(far, shown), "1");
}

/// The lineage of several statements has the position of the last write.
void LeavesLast(Connection& near, const std::string& statements) {
  const antipode::ScopeGuard request;
  near.client.Query(statements);
  const std::vector<antipode::WriteId> found = antipode::Current().writes();
  const antipode::ScopeGuard other;
  Check(near.client.Query("DELETE FROM kept WHERE id = 1") == 0, "writes");
  const antipode::WriteId next = antipode::Current().writes().at(0);
  const bool last = std::any_of(found.begin(), found.end(), [&](const antipode::WriteId& each) {
    return each.key == next.key && std::get<std::uint64_t>(each.version) + 1 == std::get<std::uint64_t>(next.version);
  });
  Check(last, statements + " enters the position of its last write");
}

/// A function that is not built in may write: its position enters, also on a connection that has heard of none before.
void Functions(Connection& near, Connection& far) {
  const auto shown = [](int id) {
    return "SELECT COUNT(*) FROM words WHERE word = 'f' AND id = " + std::to_string(id);
  };
  const std::uint64_t before = UnknownFunctions();
  Leaves(near, far, {"SELECT noting(1)"}, shown(1));
  Leaves(near, far, {"SELECT `noting` (2) FROM (SELECT 1 AS a) d WHERE a IN (1)"}, shown(2));
  Leaves(near, far, {"UPDATE kept SET id = id WHERE noting(id - 6) = 0"}, shown(3));
  Leaves(near, far, {"BEGIN", "SELECT noting(4)", "COMMIT"}, shown(4));
  Leaves(near, far, {"DELETE FROM words WHERE id = 99; SELECT noting(5)"}, shown(5));
  Same(std::to_string(UnknownFunctions() - before), "5");
  // A position that came before, in the same call, says nothing of what a prepared statement wrote.
  Ask(near, "PREPARE calling FROM 'SELECT noting(7)'");
  Leaves(near, far, {"EXECUTE calling"}, shown(7));
  Ask(near, "PREPARE calling FROM 'SELECT noting(8)'");
  LeavesLast(near, "INSERT INTO kept VALUES (1); EXECUTE calling");
  {
    const antipode::ScopeGuard request;
    MYSQL_STMT* call = mysql_stmt_init(near.native);
    Check(near.client.Prepare(call, "SELECT noting(6)") == 0, "prepares");
    Check(near.client.Execute(call) == 0, "writes");
    mysql_stmt_close(call);
    Holds(1);
    BarrierAtRead();
    Same(Ask(far, shown(6)), "1");
  }
  Enters(near, "SELECT reading(1)", 0);
  Enters(near, "SELECT COUNT(*), NOW() FROM words", 0);
  if (!IsMariaDb(near)) return;
  Enters(near, "SELECT NEXTVAL(numbers)", 1);
  Enters(near, "SELECT NEXT VALUE FOR numbers", 0);  // One of those that the first wrote down.
}

/// A view calls a function that writes: neither the statement nor the reply says so, also where it was prepared.
void Views(Connection& near, Connection& far) {
  const auto shown = [](int id) { return "SELECT COUNT(*) FROM words WHERE id = " + std::to_string(id); };
  Enters(near, "SELECT id FROM kept", 0);
  Leaves(near, far, {"SELECT id FROM noted_31"}, shown(31));
  Leaves(near, far, {"SELECT above.id FROM (SELECT 1 AS a) d JOIN `app`.`above`"}, shown(32));
  Leaves(near, far, {"SELECT 1 AS a; SELECT id FROM noted_33"}, shown(33));
  Leaves(near, far, {"BEGIN", "SELECT id FROM noted_34", "COMMIT"}, shown(34));
  const antipode::ScopeGuard request;
  MYSQL_STMT* read = mysql_stmt_init(near.native);
  Check(near.client.Prepare(read, "SELECT id FROM noted_35") == 0, "prepares");
  Check(near.client.Execute(read) == 0, "writes");
  mysql_stmt_close(read);
  Holds(1);
  BarrierAtRead();
  Same(Ask(far, shown(35)), "1");
}

/// What a function writes is asked for once a transaction, at its end, also where that is a rollback.
void Rollbacks(Connection& near, Connection& far) {
  Leaves(near, far, {"BEGIN", "SELECT loosely(20)", "ROLLBACK"}, "SELECT COUNT(*) FROM loose WHERE id = 20");
  Leaves(near, far, {"BEGIN", "INSERT INTO loose VALUES (21)", "ROLLBACK"}, "SELECT COUNT(*) FROM loose WHERE id = 21");
  {
    const antipode::ScopeGuard request;
    for (const char* each : {"BEGIN", "SELECT noting(22)", "ROLLBACK"}) Ask(near, each);
    Holds(0);
  }
  // What no rollback undoes is there before the end of its transaction.
  for (const char* each : {"SELECT loosely(23)", "INSERT INTO loose VALUES (24), (24)"}) {
    Leaves(near, far, {"BEGIN", each},
           std::string("SELECT COUNT(*) FROM loose WHERE id = ") + (each[0] == 'S' ? "23" : "24"));
    Ask(near, "ROLLBACK");
  }
}

/// A write that failed may leave its first rows where there are no transactions.
void Failures(Connection& near, Connection& far) {
  Leaves(near, far, {"INSERT INTO loose VALUES (30), (30)"}, "SELECT COUNT(*) FROM loose WHERE id = 30");
  Leaves(near, far, {"INSERT INTO loose VALUES (31), (31)"}, "SELECT COUNT(*) FROM loose WHERE id = 31");
  Enters(near, "INSERT INTO loose VALUES (33)", 1);
  const antipode::ScopeGuard request;
  Check(near.client.Query("INSERT INTO words VALUES (32, 'a'), (32, 'b')") == 1062, "the server's number");
  Same(near.client.ErrorText().substr(0, 9), "Duplicate");
  Check(near.client.Query("INSERT INTO nowhere VALUES (1)") == 1146, "the server's number");
  Holds(0);
}

/// A wait that ends in the middle of what is asked loses the connection: no later statement gets another's answer.
void CutOff(Connection& near, Connection& far) {
  constexpr int kWaits = 150;
  constexpr double kStepS = 0.00002;
  std::optional<Connection> cut;
  for (int n = 0; n < kWaits; ++n) {
    if (!cut) cut.emplace(far.region);
    {
      const antipode::ScopeGuard request;
      Ask(near, "REPLACE INTO words VALUES (50, '" + std::to_string(n) + "')");
      BarrierAtRead((n + 1) * kStepS);
      try {
        cut->client.Query("SELECT word FROM words WHERE id = 50");
      } catch (const antipode::UnmetError&) {
      }
    }
    const antipode::ScopeGuard later;
    const int failed = cut->client.Query("SELECT 'mine'");
    if (failed == 0) {
      Same(First(*cut), "mine");
    } else {
      Check(failed == 2006 || failed == 2013, "it says that it is lost: " + std::to_string(failed));
      cut.reset();
    }
  }
}

/// A declared function is not asked after, and not counted; what is no name is refused.
void Declared(Connection& near, Connection&) {
  const Region& region = near.region;
  antipode::mysql::Options options{region.account.user, region.account.password, region.account.database};
  options.readonly_functions = {"Reading"};
  const auto shim = antipode::mysql::Shim::Open("declared", region.host, region.port, options);
  MYSQL* native = region.Connected();
  {
    antipode::mysql::Client client(shim, native);
    const auto asked = [&] {
      Check(client.Query("SHOW SESSION STATUS LIKE 'Questions'") == 0, "asks");
      MYSQL_RES* rows = client.StoreResult();
      const int questions = std::stoi(mysql_fetch_row(rows)[1]);
      mysql_free_result(rows);
      return questions;
    };
    const antipode::ScopeGuard request;
    const int before = asked();
    Check(client.Query("SELECT reading(1)") == 0, "reads");
    mysql_free_result(client.StoreResult());
    Same(std::to_string(asked() - before), "2");
    Holds(0);
    Check(antipode::Metrics().count({"unknown_function", "declared"}) == 0, "it is not counted");
  }
  mysql_close(native);
  shim->Close();
  for (const char* wrong : {"", "reading()", "`reading`", "a.b.c"}) {
    options.readonly_functions = {wrong};
    Throws<antipode::ConfigurationError>(
        [&] { antipode::mysql::Shim::Open("wrong", region.host, region.port, options); });
  }
}

/// A child process waits and reads over connections of its own, and its parent goes on.
void Forked(Connection& near, Connection& far) {
  for (const std::string& each : antipode::mysql::TableStatements()) Ask(near, each);
  Check(ForksWell(*near.region.shim, *far.region.shim), "both processes read what they wrote");
}

/// By a router, a request reads what it wrote although the replica lags, and a patient one reads it at the replica.
void Routed(Connection& near, Connection& far) {
  const auto wait = [](double seconds) {
    auto settings = antipode::CurrentSettings();
    settings.auto_timeout = antipode::Seconds(seconds);
    antipode::Configure(settings);
  };
  const auto routed = [&]() -> Connection& {
    return antipode::RouteReads("posts") == antipode::ReadsFrom::kReplica ? far : near;
  };
  wait(0.01);
  antipode::Lineage wrote;
  {
    const antipode::ScopeGuard request;
    Check(&routed() == &far, "nothing is waited for");
    Ask(near, "START TRANSACTION");
    Ask(near, "REPLACE INTO words VALUES (90, 'routed')");
    Check(&routed() == &near, "the transaction is open");
    Ask(near, "COMMIT");
    Same(Ask(routed(), "SELECT word FROM words WHERE id = 90"), "routed");
    Check(&routed() == &near, "it does not go back in time");
    wrote = antipode::Current();
  }
  wait(10);
  const antipode::ScopeGuard patient(wrote);
  Check(&routed() == &far, "the replica shows it in time");
  Same(Ask(far, "SELECT word FROM words WHERE id = 90"), "routed");
}

}  // namespace

int main(int, char** arguments) {
  const std::map<std::string, std::function<void(Connection&, Connection&)>> checks{
      {"held", Held},           {"writes", Writes},       {"transactions", Transactions},
      {"prepared", Prepared},   {"snapshots", Snapshots}, {"untold", Untold},
      {"late", Late},           {"lost", Lost},           {"uncommitted", Uncommitted},
      {"proxied", Proxied},     {"forked", Forked},       {"functions", Functions},
      {"rollbacks", Rollbacks}, {"failures", Failures},   {"declared", Declared},
      {"cut_off", CutOff},      {"called", Called},       {"grouped", Grouped},
      {"views", Views},         {"routed", Routed}};
  const Account account{arguments[3], arguments[4], arguments[5]};
  const bool grouped = arguments[6] == std::string("grouped");
  const Region there(arguments[1], account, antipode::ReadsFrom::kPrimary, false);
  const Region here(arguments[2], account, antipode::ReadsFrom::kReplica, grouped);
  Connection near(there);
  Connection far(here);
  checks.at(arguments[6])(near, far);
}
