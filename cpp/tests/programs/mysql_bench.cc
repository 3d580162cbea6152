// Sessions of libmariadb, on MySQL and on MariaDB.
#include <mysql.h>

#include <optional>

#include "antipode/mysql_client.h"
#include "bench.h"
#include "client_checks.h"

namespace antipode::programs {
namespace {

struct Account {
  std::string user;
  std::string password;
  std::string database;
};

/// A connection that nothing instruments.
struct Plain {
  Plain(const checks::Server& server, const Account& of) : native(mysql_init(nullptr)) {
    if (mysql_real_connect(native, server.host.c_str(), of.user.c_str(), of.password.c_str(), of.database.c_str(),
                           server.port, nullptr, CLIENT_MULTI_STATEMENTS) == nullptr) {
      throw std::logic_error(mysql_error(native));
    }
  }
  ~Plain() { mysql_close(native); }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;

  MYSQL* native;
};

std::string Text(MYSQL_RES* rows) {
  std::string text;
  while (MYSQL_ROW row = rows == nullptr ? nullptr : mysql_fetch_row(rows)) {
    for (unsigned nth = 0; nth < mysql_num_fields(rows); ++nth) text += std::string(row[nth] ? row[nth] : "null") + ",";
  }
  mysql_free_result(rows);
  return text;
}

std::string Ask(const Plain& on, const std::string& sql) {
  if (mysql_real_query(on.native, sql.data(), sql.size()) != 0) throw std::logic_error(mysql_error(on.native));
  return Text(mysql_store_result(on.native));
}

/// The application's connection, instrumented.
struct Connection {
  Connection(const std::shared_ptr<mysql::Shim>& shim, const checks::Server& server, const Account& of)
      : plain(server, of), client(shim, plain.native) {}
  Plain plain;
  mysql::Client client;
};

class MySqlBench final : public Bench {
 public:
  explicit MySqlBench(const std::vector<std::string>& words)
      : near_(words.at(0).c_str()),
        far_(words.at(1).c_str()),
        account_{words.at(2), words.at(3), words.at(4)},
        primary_(Opened(near_, ReadsFrom::kPrimary)),
        replica_(Opened(far_, ReadsFrom::kReplica)),
        at_primary_(near_, account_),
        at_replica_(far_, account_) {
    for (const std::string& each : mysql::TableStatements()) Ask(at_primary_, each);
    AddStatements();
    Add("prepared", 4, [this](Random&) { Prepared(); });
    Add("by the shim", kOften, [this](Random&) { WriteByShim(Number()); });
    Add("deletes by the shim", 2, [this](Random&) { primary_->Delete("kept"); });
    Add("read at the replica", kOften, [this](Random& choose) { ReadAtReplica(choose); });
    Add("throws in a transaction", 2, [this](Random&) { Throws(); });
    Add("ended by the server", 1, [this](Random&) { End(); });
  }
  ~MySqlBench() override {
    primary_->Close();
    replica_->Close();
  }

  void Open(Random&) override {
    session_.emplace(primary_, near_, account_);
    reader_.emplace(replica_, far_, account_);
  }
  void Close() override {
    session_.reset();
    reader_.reset();
  }
  void Settle() override {
    Send("ROLLBACK");
    Connected();
  }
  std::string Committed() override { return Rows(at_primary_); }
  std::string Shown() override { return Rows(at_replica_); }
  void WriteByShim(const std::string& value) override { primary_->Write("kept", value); }

 private:
  static std::string Rows(const Plain& server) {
    return Ask(server, "SELECT * FROM words ORDER BY id") + Ask(server, "SELECT * FROM loose ORDER BY id") +
           Ask(server, "SELECT k, v FROM antipode_kv ORDER BY k");
  }

  std::shared_ptr<mysql::Shim> Opened(const checks::Server& server, ReadsFrom reads_from) const {
    return mysql::Shim::Open(kDatastore, server.host, server.port,
                             {account_.user, account_.password, account_.database, reads_from});
  }

  void AddStatements() {
    const auto one = [this](const char* name, int weight, const std::string& sql) {
      Add(name, weight, [this, sql](Random&) { Send(sql); });
    };
    one("insert", kOften, "INSERT INTO words VALUES (#, 'new')");
    one("replace", kOften, "REPLACE INTO words VALUES (1, '#')");
    one("select", kOften, "SELECT COUNT(*) FROM words");
    one("update", 4, "UPDATE words SET word = '#' WHERE id = 1");
    one("update nothing", 1, "UPDATE words SET word = 'x' WHERE id = -1");
    one("delete", 1, "DELETE FROM words WHERE id > 1 ORDER BY id LIMIT 1");
    one("again", 1, "INSERT INTO words VALUES (1, 'again')");
    one("begin", 6, "START TRANSACTION");
    one("commit", 6, "COMMIT");
    one("rollback", 3, "ROLLBACK");
    one("savepoint", 1, "SAVEPOINT s");
    one("to the savepoint", 1, "ROLLBACK TO SAVEPOINT s");
    one("autocommit off", 2, "SET autocommit = 0");
    one("autocommit on", 3, "SET autocommit = 1");
    one("several", 3, "INSERT INTO words VALUES (#, 's'); SELECT 1; REPLACE INTO words VALUES (2, '#')");
    one("several, of which one fails", 2, "REPLACE INTO words VALUES (3, '#'); SELECT * FROM nowhere");
    one("procedure", 2, "CALL adds(#)");
    one("function", 2, "SELECT noting(#)");
    one("loose", 1, "INSERT INTO loose VALUES (#)");
    one("lock", 1, "SELECT * FROM words WHERE id = 1 FOR UPDATE");
    one("no table", 1, "SELECT * FROM nowhere");
    one("no statement", 1, "NO SUCH");
    one("defines", 1, "CREATE TABLE IF NOT EXISTS more (id INT)");
  }

  void Connected() {
    if (lost_) session_.emplace(primary_, near_, account_);
    lost_ = false;
  }
  void Send(std::string sql) {
    for (std::size_t at = 0; (at = sql.find('#')) != std::string::npos;) sql.replace(at, 1, Row());
    Connected();
    Said("  " + sql);
    session_->client.Query(sql);
    while (session_->client.NextResult() == 0) continue;
    constexpr unsigned kOfClients = 2'000;
    constexpr unsigned kOfServers = 3'000;
    const unsigned number = session_->client.Errno();
    lost_ = (number >= kOfClients && number < kOfServers) || number == 1927;
    if (number != 0) Said("  -- " + session_->client.ErrorText());
  }
  /// A number that no row has.
  std::string Row() {
    constexpr int kRowsOfSteps = 100;
    return std::to_string(std::stoi(Number()) + kRowsOfSteps);
  }

  void Prepared() {
    Connected();
    MYSQL_STMT* statement = mysql_stmt_init(session_->plain.native);
    const std::string sql = "REPLACE INTO words VALUES (4, '" + Row() + "')";
    if (session_->client.Prepare(statement, sql) == 0) session_->client.Execute(statement);
    mysql_stmt_close(statement);
  }

  void ReadAtReplica(Random& choose) {
    BarrierAtRead(HeldS(choose));
    if (reader_->client.Query("SELECT id, word FROM words ORDER BY id") != 0) return;
    const std::string found = Text(reader_->client.StoreResult());
    const std::string there = Ask(at_primary_, "SELECT id, word FROM words ORDER BY id");
    if (found != there) throw Fault("early", "a held read shows " + found + " for " + there);
  }

  void Throws() {
    Send("START TRANSACTION");
    Send("REPLACE INTO words VALUES (5, '#')");
    session_.emplace(primary_, near_, account_);  // As a stack that is unwound ends it.
    throw Thrown();
  }
  void End() {
    Connected();
    const std::string sql = "KILL " + std::to_string(mysql_thread_id(session_->plain.native));
    mysql_real_query(at_primary_.native, sql.data(), sql.size());  // Nothing happens to one that is gone.
  }

  checks::Server near_;
  checks::Server far_;
  Account account_;
  std::shared_ptr<mysql::Shim> primary_;
  std::shared_ptr<mysql::Shim> replica_;
  Plain at_primary_;
  Plain at_replica_;
  std::optional<Connection> session_;
  std::optional<Connection> reader_;
  bool lost_ = false;
};

}  // namespace

std::unique_ptr<Bench> MakeMySql(const std::vector<std::string>& words) { return std::make_unique<MySqlBench>(words); }

}  // namespace antipode::programs
