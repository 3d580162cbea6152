#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>

#include "antipode/errors.h"
#include "antipode/floor.h"
#include "antipode/mysql.h"
#include "antipode/observer.h"
#include "antipode/scope.h"
#include "antipode/stored.h"
#include "mysql/endpoint.h"
#include "mysql/inside.h"
#include "mysql/position.h"
#include "mysql/promises.h"
#include "mysql/table.h"

namespace antipode::mysql {
namespace {

/// The longest that making a connection may take; the first one of a process takes its time.
constexpr double kConnectS = 5;
/// Old records of promises are deleted at one of so many fulfilments, and in so many seconds.
constexpr int kSweepEvery = 16;
constexpr double kSweepS = 0.5;

void Record(MYSQL* connection, const std::string& sql, const Promise& promise) {
  if (mysql_real_query(connection, sql.data(), sql.size()) != 0) {
    throw Error(mysql_error(connection), mysql_errno(connection));
  }
  if (mysql_affected_rows(connection) == kOpposite) throw PromiseAbandoned(promise.id);
}

std::optional<Tls> Checked(const std::optional<Tls>& tls) {
  if (!tls) return tls;
  if (tls->verify && tls->ca.empty()) throw ConfigurationError("name the certificates to trust (ca), or do not verify");
  if (tls->cert.empty() != tls->key.empty()) throw ConfigurationError("a certificate needs its key, and a key it");
  return tls;
}

}  // namespace

void Shim::Inside::Unsampled(const std::string& datastore, const std::string& cause) {
  Count("uncovered_write", datastore);
  WarnOnce("uncovered_write", datastore, cause, "a write to '" + datastore + "' has no position: " + cause);
  MarkIncomplete(datastore, "unsampled");
}

Observation Undecidable(const Floor& floor, const std::string& cause) {
  Observation shown;
  for (const WriteId& each : floor.writes()) {
    shown.statuses[each] = Status::kUndecidable;
    shown.causes[each] = cause;
  }
  for (const Promise& each : floor.promises()) {
    shown.promises[each] = Status::kUndecidable;
    shown.promise_causes[each] = cause;
  }
  return shown;
}

Observation ShownBy(Session& session, Shim::Inside& inside, const std::set<WriteId>& writes,
                    const std::set<Promise>& promises, double timeout_s) {
  Observation shown;
  shown.server = session.facts.server;
  AskedServers servers(session, inside.address, inside.silent, timeout_s);
  if (!writes.empty()) Look(servers, session.facts.group, writes).Tell(shown);
  if (!promises.empty()) shown.promises = RecordsOf(session.connection, inside.promises, promises);
  return shown;
}

/// What the shim does, and its connections.
class Shim::Table {
 public:
  Table(Shim& shim, Address address, const Options& options)
      : shim_(shim), inside_(std::move(address), options), options_(options) {}

  [[nodiscard]] Inside& inside() noexcept { return inside_; }

  using Work = std::function<void(Connection&)>;

  /// Does what is one statement, or one transaction.
  Lineage Commit(const Lineage& base, bool transaction, const Work& work) {
    auto session = Take(timeout_s());
    Connection& connection = session->connection;
    connection.Within(timeout_s());
    connection.TakeGtids();
    bool doubtful = !transaction;
    try {
      if (transaction) connection.Ask("START TRANSACTION");
      work(connection);
      doubtful = true;
      if (transaction) connection.Ask("COMMIT");
    } catch (const Lost&) {
      if (doubtful) MarkIncomplete(shim_.datastore(), "in_doubt");
      throw;
    } catch (const Error& error) {
      Undo(std::move(session), transaction);
      Explain(error);
      throw;
    } catch (const AntipodeError&) {
      Undo(std::move(session), transaction);
      throw;
    }
    Lineage written = Written(*session, base);
    Release(std::move(session));
    return written;
  }

  /// Records, in the transaction that is open, that a promise is fulfilled.
  void Fulfilled(Connection& connection, const Promise& promise) {
    try {
      if (connection.Ask(Recording(inside_.promises, promise, true)).changed == kOpposite)
        throw PromiseAbandoned(promise.id);
    } catch (const Error& error) {
      ExplainPromises(shim_.datastore(), error);
      throw;
    }
  }

  void FulfilledBy(MYSQL* connection, const Promise& promise) {
    constexpr unsigned kState = SERVER_STATUS_IN_TRANS | SERVER_STATUS_AUTOCOMMIT;
    if ((connection->server_status & kState) == SERVER_STATUS_AUTOCOMMIT) {
      throw ConfigurationError("a promise is fulfilled in the transaction of its data: START TRANSACTION first");
    }
    try {
      Record(connection, Recording(inside_.promises, promise, true), promise);
    } catch (const Error& error) {
      ExplainPromises(shim_.datastore(), error);
      throw;
    }
  }

  /// Deletes records whose time is over, now and then; what fails is left.
  void Sweep() {
    if (!shim_.Abandons() || fulfilments_++ % kSweepEvery != 0) return;
    try {
      auto session = Take(kSweepS);
      session->connection.Within(kSweepS);
      SweepPromises(session->connection, inside_.promises);
      Release(std::move(session));
    } catch (const Error&) {
      // The next one tries again; its connection's end rolled back.
    }
  }

  Reading Read(std::string_view key) {
    std::unique_ptr<Session> session;
    const auto stale = std::make_shared<StaleRead>();
    if (const auto floor = Floor::Current(shim_, true, nullptr, stale)) session = Held(*floor);
    if (!session) session = Take(timeout_s());
    Connection& connection = session->connection;
    connection.Within(timeout_s());
    try {
      const Stored row = ReadRow(connection, key);
      const Text buried = row.value ? Text() : Buried(connection, key);
      stale->Answered();
      Lineage lineage = row.value ? Beside(row) : buried ? StoredLineage(shim_.datastore(), *buried) : Lineage();
      lineage = lineage.Merge(Seen(*session));
      Release(std::move(session));
      const auto scope = CurrentScope();
      if (options_.merge_reads && scope) scope->Merge(lineage);
      return {row.value, lineage};
    } catch (const Error& error) {
      Undo(std::move(session), false);
      Explain(error);
      throw;
    }
  }

  /// Does something as clients do that know nothing of lineages.
  void Plain(const Work& work) {
    auto session = Take(timeout_s());
    session->connection.Within(timeout_s());
    work(session->connection);
    Release(std::move(session));
  }

  std::unique_ptr<Endpoint> Open(double timeout_s) {
    return std::make_unique<MySqlEndpoint>(shim_.datastore(), inside_, timeout_s);
  }

  std::set<WriteId> Fence(double timeout_s) {
    try {
      Session session(inside_.address, timeout_s, inside_.runs);
      const auto lacking = session.facts.Lacking();
      if (!lacking.empty()) {
        throw ConfigurationError("writes to '" + shim_.datastore() + "' have no positions: " + Joined(lacking));
      }
      const auto asked = session.connection.Rows(CoverQuery(session.facts.flavor));
      // Asked after the position: what still takes writes was the primary then.
      AskedServers servers(session, inside_.address, inside_.silent, timeout_s);
      const bool writable = servers.State(nullptr)->writable();
      const std::set<std::string> names =
          session.facts.flavor == Flavor::kMySql ? std::set{session.facts.uuid} : servers.Primaries(nullptr);
      if (!writable || names.empty()) {
        throw Unreachable("the primary of '" + shim_.datastore() + "' takes no writes now");
      }
      const auto covered = Covered(session.facts.flavor, asked.at(0), shim_.datastore());
      std::set<WriteId> fence(covered.begin(), covered.end());
      if (!fence.empty()) fence.insert(Following(shim_.datastore(), *names.begin()));
      return fence;
    } catch (const Error& error) {
      Refuse(error);
    }
  }

  bool Abandon(const Promise& promise, double timeout_s) {
    try {
      Connection connection(inside_.address, timeout_s);
      return connection.Ask(Recording(inside_.promises, promise, false)).changed != kOpposite;
    } catch (const Error& error) {
      ExplainPromises(shim_.datastore(), error);
      throw Unreachable(error.what());  // Somebody holds the record for too long, or no writes are taken.
    }
  }

  void Close() {
    const std::lock_guard guard(lock_);
    closed_ = true;
    idle_.clear();
  }

  void Forked() {
    Renew(inside_.runs);
    Renew(inside_.silent);
    Renew(lock_);
    Renew(idle_);
  }

  [[nodiscard]] bool HasDatabase() const { return !inside_.address.database.empty(); }

 private:
  [[nodiscard]] double timeout_s() const { return options_.timeout.count(); }

  /// Ends what failed: nothing of it stays.
  void Undo(std::unique_ptr<Session> session, bool transaction) {
    try {
      if (transaction) session->connection.Ask("ROLLBACK");
      Release(std::move(session));
    } catch (const Error&) {
      // The server rolls back.
    }
  }

  /// Throws ConfigurationError where a table is missing.
  void Explain(const Error& error) const {
    if (!IsNoTable(error) && !IsNoColumn(error)) return;
    std::string statements;
    for (const std::string& each : TableStatements()) statements += " " + each + ";";
    throw ConfigurationError("'" + shim_.datastore() + "' lacks a table or column of Table 2 (" + error.what() +
                             "); run what is missing of:" + statements);
  }

  /// Enters what was committed.
  Lineage Written(Session& session, const Lineage& base) {
    std::vector<WriteId> writes;
    std::string cause = "the server does not say its position";
    try {
      writes = Committed(session.facts.flavor, session.connection.TakeGtids(), inside_.runs, shim_.datastore());
    } catch (const NotGtids& error) {
      cause = error.what();
    }
    Lineage written = base;
    for (const WriteId& each : writes) {
      RecordWrite(each);
      written = written.Append(each);
    }
    return writes.empty() ? Unsampled(base, Joined({cause, Joined(session.facts.Lacking())})) : written;
  }

  Lineage Unsampled(const Lineage& base, const std::string& cause) {
    Inside::Unsampled(shim_.datastore(), cause);
    return base.Marked({shim_.datastore(), "unsampled"});
  }

  Lineage Beside(const Stored& row) {
    if (row.texts && row.own) return BesideOf(shim_.datastore(), *row.texts);
    Count(row.texts ? "foreign" : "companion_absent", shim_.datastore());
    return {};
  }

  /// What a read before it may have seen.
  Lineage Seen(Session& session) {
    Lineage seen;
    if (session.facts.problems.empty() && inside_.reach.Knows(session.facts)) {
      const Flavor flavor = session.facts.flavor;
      seen = Covering(flavor, session.connection.Rows(CoverQuery(flavor)).at(0), shim_.datastore());
    } else {
      seen = seen.Marked({shim_.datastore(), "unsampled"});
    }
    if (!seen.incomplete().empty()) Count("unsampled_read", shim_.datastore());
    return seen;
  }

  /// A connection that shows what is demanded; the read waits for it. None where no check was answered, and it may be
  /// all the same.
  std::unique_ptr<Session> Held(Floor& floor) {
    std::unique_ptr<Session> session;
    const auto observe = [&](double timeout_s) -> Observation {
      try {
        if (!session) session = Take(timeout_s);
        inside_.reach.Require(session->facts, shim_.datastore());
        return ShownBy(*session, inside_, floor.writes(), floor.promises(), timeout_s);
      } catch (const Unreachable&) {
        session.reset();
        throw;
      } catch (const Lost& error) {
        session.reset();
        throw Unreachable(error.what());
      } catch (const Error& error) {
        return Undecidable(floor, error.what());
      }
    };
    floor.Hold(observe, &shim_);
    return session;
  }

  std::unique_ptr<Session> Take(double timeout_s) {
    {
      const std::lock_guard guard(lock_);
      if (closed_) throw Error("the shim of '" + shim_.datastore() + "' is closed", 0);
      while (!idle_.empty()) {
        auto session = std::move(idle_.back());
        idle_.pop_back();
        if (session->connection.Usable()) return session;
      }
    }
    return std::make_unique<Session>(inside_.address, std::min(timeout_s, kConnectS), inside_.runs);
  }

  void Release(std::unique_ptr<Session> session) {
    const std::lock_guard guard(lock_);
    if (!closed_ && session->connection.Usable()) idle_.push_back(std::move(session));
  }

  Shim& shim_;
  Inside inside_;
  Options options_;
  std::atomic<int> fulfilments_{0};
  std::mutex lock_;
  bool closed_ = false;
  std::vector<std::unique_ptr<Session>> idle_;
};

std::shared_ptr<Shim> Shim::Open(const std::string& datastore, const std::string& host, std::uint16_t port,
                                 const Options& options) {
  std::shared_ptr<Shim> shim(new Shim(datastore, host, port, options));
  Register(shim);
  return shim;
}

Shim::Shim(const std::string& datastore, const std::string& host, std::uint16_t port, const Options& options)
    : Store(datastore, options.reads_from, options.barriers),
      table_(std::make_unique<Table>(
          *this, Address{host, port, options.user, options.password, options.database, Checked(options.tls)},
          options)) {}
Shim::~Shim() = default;

Shim::Inside& Shim::inside() const noexcept { return table_->inside(); }

Lineage Shim::Write(std::string_view key, std::string_view value, const std::optional<Lineage>& lineage,
                    const std::optional<Promise>& fulfils) {
  const Lineage base = lineage ? *lineage : Current();
  if (Disabled()) {
    table_->Plain([&](Connection& connection) { WritePlain(connection, key, value); });
    return base;
  }
  const Lineage written = table_->Commit(base, fulfils.has_value(), [&](Connection& connection) {
    if (fulfils) table_->Fulfilled(connection, *fulfils);
    WriteRow(connection, key, value, StoredText(base));
  });
  if (fulfils) table_->Sweep();
  return written;
}

Lineage Shim::Delete(std::string_view key, const std::optional<Lineage>& lineage) {
  const Lineage base = lineage ? *lineage : Current();
  if (Disabled()) {
    table_->Plain([&](Connection& connection) { DeletePlain(connection, key); });
    return base;
  }
  return table_->Commit(base, true, [&](Connection& connection) { DeleteRow(connection, key, StoredText(base)); });
}

Reading Shim::Read(std::string_view key) {
  if (Disabled()) {
    Reading reading;
    table_->Plain([&](Connection& connection) { reading.value = ReadRow(connection, key).value; });
    return reading;
  }
  try {
    return table_->Read(key);
  } catch (const Unreachable& error) {
    throw Error(error.what(), 0);
  }
}

void Shim::Fulfil(st_mysql* connection, const Promise& promise) {
  table_->FulfilledBy(connection, promise);
  table_->Sweep();
}

bool Shim::Promises() const { return table_->HasDatabase(); }
std::unique_ptr<Endpoint> Shim::OpenEndpoint(double timeout_s) { return table_->Open(timeout_s); }
std::set<WriteId> Shim::Fence(double timeout_s) { return table_->Fence(timeout_s); }

std::optional<WriteId> Shim::LogStart(const std::string& key) const {
  const auto log = MySqlLog::Of(key);  // Two servers of MariaDB may number their domains alike.
  return log ? std::optional(WriteId{datastore(), log->key(), log->first}) : std::nullopt;
}

bool Shim::AbandonPromise(const Promise& promise, double timeout_s) { return table_->Abandon(promise, timeout_s); }

void Shim::Forked() {
  Store::Forked();
  table_->Forked();
}

void Shim::Close() {
  table_->Close();
  Store::Close();
}

}  // namespace antipode::mysql
