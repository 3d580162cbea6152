// MySQL and MariaDB in the agent: what their shim decides, and the shim itself.
#include <mysql.h>

#include <algorithm>
#include <deque>

#include "antipode/mysql.h"
#include "antipode/mysql_client.h"
#include "mysql/connection.h"
#include "mysql/functions.h"
#include "mysql/look.h"
#include "mysql/position.h"
#include "mysql/statements.h"
#include "mysql/views.h"
#include "open_shim.h"

namespace antipode::agent {
namespace {

/// The server that checks MariaDB's vectors.
constexpr std::uint64_t kServerId = 2;
constexpr const char* kUuid = "00000000-0000-0000-0000-000000000001";

/// The servers of a vector.
class GivenServers final : public mysql::Servers {
 public:
  explicit GivenServers(const Json& server) : here_(server) {}

  std::shared_ptr<const mysql::ServerState> State(const mysql::Source* above) override {
    const Json& server = At(above);
    const bool writable = !server.value("read_only", false);
    if (!server.contains("gtid_executed")) {
      return std::make_shared<mysql::MariaDbState>(mysql::MariaDbPosition::Parse(TextIn(server, "gtid_slave_pos")),
                                                   mysql::MariaDbPosition::Parse(TextIn(server, "gtid_binlog_state")),
                                                   writable, kServerId, here_.value("gtid_strict_mode", false));
    }
    const bool later = above == nullptr && asked_ && server.contains("later");
    asked_ = asked_ || above == nullptr;
    return std::make_shared<mysql::MySqlState>(mysql::GtidSet::Parse(TextIn(server, later ? "later" : "gtid_executed")),
                                               writable);
  }

  std::vector<mysql::Source> Sources(const mysql::Source* above) override {
    const Json& follows = At(above).at("follows");
    if (follows.is_string()) throw mysql::Error(follows.get<std::string>(), 0);
    std::vector<mysql::Source> sources;
    for (const Json& each : follows) {
      above_.push_back(each.at("server"));
      mysql::Source source;
      source.host = "above";
      source.connected = each.value("connected", true);
      source.port = static_cast<std::uint16_t>(above_.size() - 1);
      if (each.contains("uuid")) {
        source.log = each.at("uuid");
        source.received = mysql::GtidSet::Parse(TextIn(each, "retrieved"));
      } else {
        const Json id = each.value("server_id", Json(""));
        source.log = id.is_string() ? id.get<std::string>() : id.dump();
        source.received = mysql::MariaDbPosition::Parse(TextIn(each, "gtid_io_pos"));
      }
      sources.push_back(std::move(source));
    }
    return sources;
  }

  std::set<std::string> Primaries(const mysql::Source* above) override {
    const Json& server = At(above);
    if (server.contains("galera")) {
      const Json& galera = server.at("galera");
      if (galera.at("status") != "Primary") return {};
      return {TextIn(galera, "state_uuid") + ":" + TextIn(galera, "conf_id")};
    }
    if (!server.contains("gtid_executed")) return {std::to_string(server.value("server_id", kServerId))};
    std::set<std::string> primaries{server.value("uuid", kUuid)};
    if (!server.contains("members")) return primaries;
    const Json& members = server.at("members");
    if (members.is_string()) throw mysql::Error(members.get<std::string>(), 0);
    primaries.insert(members.begin(), members.end());
    return primaries;
  }

  [[nodiscard]] const char* Grants() const override { return "REPLICATION CLIENT"; }

 private:
  static std::string TextIn(const Json& found, const char* name) { return found.value(name, std::string()); }

  const Json& At(const mysql::Source* above) {
    if (above == nullptr) return here_;
    const Json& found = above_.at(above->port);
    if (found == "unreachable") throw Unreachable("unreachable");
    if (found.is_string()) throw mysql::Error(found.get<std::string>(), 0);
    return found;
  }

  const Json& here_;
  std::deque<Json> above_;
  bool asked_ = false;
};

Json LookAt(const Json& given) {
  const Json& server = given.at("server");
  Json statuses = Json::array();
  for (Json each : given.at("writes")) {
    each["datastore"] = "posts";
    const WriteId write = json::WriteOf(each);
    GivenServers servers(server);
    statuses.push_back(NameOf(mysql::Look(servers, server.contains("group"), {write}).judged.at(write).first));
  }
  return {{"statuses", statuses}};
}

Json Commits(const Json& given) {
  mysql::Runs runs;
  auto flavor = mysql::Flavor::kMariaDb;
  Json all = Json::array();
  for (const Json& session : given.at("sessions")) {
    if (session.contains("gtid_executed")) {
      flavor = mysql::Flavor::kMySql;
      runs.Learn(mysql::GtidSet::Parse(session.at("gtid_executed").get<std::string>()),
                 session.value("group_block", std::uint64_t{0}));
    }
    Json& commits = all.emplace_back(Json::array());
    for (const Json& commit : session.at("commits")) {
      Json& writes = commits.emplace_back(Json::array());
      try {
        for (const WriteId& each : mysql::Committed(flavor, commit.at("gtids").get<std::string>(), runs, "posts")) {
          writes.push_back({{"key", each.key}, {"version", std::to_string(std::get<std::uint64_t>(each.version))}});
        }
      } catch (const mysql::NotGtids&) {
        writes = nullptr;
      }
    }
  }
  return {{"writes", all}};
}

bool MayWriteByView(const Json& given) {
  const Json& definitions = given.at("definitions");
  const mysql::Asked asked = [&](const std::string& question) {
    std::string name = question.substr(std::string("SHOW CREATE TABLE ").size());
    name.erase(std::remove(name.begin(), name.end(), '`'), name.end());
    const Json text = definitions.value(name, Json(""));
    if (text.is_null()) throw mysql::Error("denied", 1142);
    return std::vector<mysql::Row>{{{"Create View", text.get<std::string>()}}};
  };
  const auto flavor = given.at("family") == "mysql" ? mysql::Flavor::kMySql : mysql::Flavor::kMariaDb;
  const mysql::Functions harmless = given.value("readonly_functions", mysql::Functions());
  const auto names = mysql::NamesRead(given.at("command").get<std::string>());
  return mysql::ViewsSeen().MayWrite(names, flavor, harmless, asked, 0);
}

Json SetOf(const Json& given) {
  Json logs = Json::object();
  try {
    const auto set = mysql::GtidSet::Parse(given.at("text").get<std::string>());
    for (const auto& [log, runs] : set.logs()) {
      for (const auto& run : runs) logs[log].push_back({std::to_string(run.first), std::to_string(run.last)});
    }
  } catch (const mysql::NotGtids&) {
    logs = nullptr;
  }
  return {{"logs", logs}};
}

std::optional<mysql::Tls> TlsOf(const Json& server) {
  if (!server.contains("tls")) return std::nullopt;
  const Json& tls = server.at("tls");
  return mysql::Tls{tls.value("ca", ""), tls.value("cert", ""), tls.value("key", ""), tls.value("verify", true)};
}

class MysqlShim final : public TableShim<mysql::Shim> {
 public:
  MysqlShim(std::shared_ptr<mysql::Shim> shim, Json server) : TableShim(std::move(shim)), server_(std::move(server)) {}

  void RollBack(const std::string& key, const std::string& value, const Promise& fulfils) override {
    const auto connection = Connected(server_);
    Run(*connection, "START TRANSACTION");
    shim().Fulfil(connection.get(), fulfils);
    Run(*connection, "REPLACE INTO antipode_kv (k, v) VALUES ('" + key + "', '" + value + "')");
    Run(*connection, "ROLLBACK");
  }

  /// A connection of the application's, with the client alone.
  static std::unique_ptr<MYSQL, void (*)(MYSQL*)> Connected(const Json& server) {
    std::unique_ptr<MYSQL, void (*)(MYSQL*)> connection(mysql_init(nullptr), mysql_close);
    if (const auto tls = TlsOf(server)) mysql::Encrypt(connection.get(), *tls);
    const auto text = [&](const char* name) { return server.at(name).get<std::string>(); };
    if (mysql_real_connect(connection.get(), text("host").c_str(), text("user").c_str(), text("password").c_str(),
                           text("database").c_str(), server.at("port"), nullptr, 0) == nullptr) {
      throw mysql::Error(mysql_error(connection.get()), mysql_errno(connection.get()));
    }
    return connection;
  }
  static void Run(MYSQL& connection, const std::string& sql) {
    if (mysql_real_query(&connection, sql.data(), sql.size()) != 0) {
      throw mysql::Error(mysql_error(&connection), mysql_errno(&connection));
    }
  }

 private:
  Json server_;
};

std::shared_ptr<mysql::Shim> Opened(const Json& given) {
  const Json& server = given.at("server");
  mysql::Options options{server.at("user"), server.at("password"), server.at("database")};
  if (given.value("reads_from", "primary") == "replica") options.reads_from = ReadsFrom::kReplica;
  options.merge_reads = given.value("on_read", "merge") == "merge";
  options.tls = TlsOf(server);
  const Json timeout_s = given.value("timeout_s", Json());
  if (!timeout_s.is_null()) options.timeout = std::chrono::duration<double>(timeout_s.get<double>());
  return mysql::Shim::Open(given.at("datastore"), server.at("host"), server.at("port").get<std::uint16_t>(), options);
}

/// Plain statements of an instrumented connection, each in a transaction.
class MysqlClient final : public OpenShim {
 public:
  explicit MysqlClient(const Json& given)
      : shim_(Opened(given)),
        connection_(MysqlShim::Connected(given.at("server"))),
        client_(shim_, connection_.get()) {}
  ~MysqlClient() override { shim_->Close(); }
  Store& store() override { return *shim_; }

  std::optional<Lineage> Write(const std::string& key, const std::string& value, const std::optional<Lineage>&,
                               const std::optional<Promise>&) override {
    Transact("REPLACE INTO antipode_kv (k, v) VALUES (" + Quoted(key) + ", " + Quoted(value) + ")");
    return std::nullopt;
  }
  std::optional<Lineage> Delete(const std::string& key, const std::optional<Lineage>&) override {
    Transact("DELETE FROM antipode_kv WHERE k = " + Quoted(key));
    return std::nullopt;
  }
  Found Read(const std::string& key) override {
    return {Transact("SELECT v FROM antipode_kv WHERE k = " + Quoted(key)), std::nullopt};
  }
  void RollBack(const std::string&, const std::string&, const Promise&) override {
    throw Unsupported("a client fulfils no promises");
  }

 private:
  std::string Quoted(const std::string& text) {
    std::string quoted(text.size() * 2 + 1, '\0');
    quoted.resize(mysql_real_escape_string(connection_.get(), quoted.data(), text.data(), text.size()));
    return "'" + quoted + "'";
  }

  void Run(const std::string& sql) {
    if (client_.Query(sql) != 0) throw mysql::Error(client_.ErrorText(), client_.Errno());
  }

  /// The first value of the first row, where there is one.
  std::optional<std::string> Transact(const std::string& sql) {
    Run("START TRANSACTION");
    std::optional<std::string> value;
    try {
      Run(sql);
      const std::unique_ptr<MYSQL_RES, void (*)(MYSQL_RES*)> rows(client_.StoreResult(), mysql_free_result);
      const MYSQL_ROW row = rows ? mysql_fetch_row(rows.get()) : nullptr;
      if (row != nullptr && row[0] != nullptr) value.emplace(row[0], mysql_fetch_lengths(rows.get())[0]);
    } catch (const std::exception&) {
      client_.Query("ROLLBACK");
      throw;
    }
    Run("COMMIT");
    return value;
  }

  std::shared_ptr<mysql::Shim> shim_;
  std::unique_ptr<MYSQL, void (*)(MYSQL*)> connection_;
  mysql::Client client_;
};

}  // namespace

std::unique_ptr<OpenShim> OpenMysql(const Json& given) {
  const Json& server = given.at("server");
  auto shim = Opened(given);
  if (shim->reads_from() == ReadsFrom::kPrimary) {
    const auto connection = MysqlShim::Connected(server);
    for (const std::string& each : mysql::TableStatements()) MysqlShim::Run(*connection, each);
  }
  return std::make_unique<MysqlShim>(std::move(shim), server);
}

std::unique_ptr<OpenShim> OpenMysqlClient(const Json& given) { return std::make_unique<MysqlClient>(given); }

Json DecideMysql(const std::string& kind, const Json& given) {
  if (kind == "look_at") return LookAt(given);
  if (kind == "commits") return Commits(given);
  if (kind == "gtid_set") return SetOf(given);
  if (kind == "cover") {
    const mysql::Row asked = given.at("asked");
    const auto flavor = asked.count("gtid_mode") != 0 ? mysql::Flavor::kMySql : mysql::Flavor::kMariaDb;
    return {{"lineage", json::Of(mysql::Covering(flavor, asked, "posts"))}};
  }
  if (kind == "server") {
    const auto facts = mysql::Facts::Of(given.at("variables").get<mysql::Row>(), "1");
    return {{"waits", facts.problems.empty()}, {"numbers", facts.Lacking().empty()}};
  }
  if (kind == "command") {
    return {{"does", mysql::NamesOf(mysql::EffectsOf(given.at("command").get<std::string>()))}};
  }
  if (kind == "calls") {
    const auto flavor = given.at("family") == "mysql" ? mysql::Flavor::kMySql : mysql::Flavor::kMariaDb;
    return {{"calls", mysql::CallsOf(mysql::CallsOf(given.at("command").get<std::string>()), flavor)}};
  }
  if (kind == "view") return {{"may_write", MayWriteByView(given)}};
  if (kind == "found") {
    return {{"lineage", json::Of(mysql::BesideOf("posts", given.at("column").get<std::string>()))}};
  }
  throw Unsupported("C++ decides nothing of MySQL that is called '" + kind + "'");
}

}  // namespace antipode::agent
