#include <errmsg.h>
#include <mysql.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "antipode/clock.h"
#include "antipode/errors.h"
#include "antipode/floor.h"
#include "antipode/mysql_client.h"
#include "antipode/observer.h"
#include "antipode/scope.h"
#include "antipode/settings.h"
#include "mysql/functions.h"
#include "mysql/inside.h"
#include "mysql/position.h"
#include "mysql/session.h"
#include "mysql/session_state.h"
#include "mysql/views.h"

namespace antipode::mysql {
namespace {

/// How long what the library asks in addition to statements may take.
constexpr double kAskS = 5;
constexpr const char* kWho = ", @@server_id AS server_id, @@GLOBAL.read_only AS read_only";
constexpr const char* kForeign =
    "statements of one connection reach several servers, so that what one of them shows says nothing of where the next "
    "one goes";
/// Whether no trigger and no function of the user's can have read, as far as this user sees; and whether what locks its
/// tables can have read no others: through a view, or of the server's own.
constexpr const char* kUntriggered =
    "SELECT NOT EXISTS (SELECT 1 FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA NOT IN ('mysql', 'sys'))"
    " AND NOT EXISTS (SELECT 1 FROM information_schema.ROUTINES WHERE ROUTINE_TYPE = 'FUNCTION'"
    " AND ROUTINE_SCHEMA NOT IN ('mysql', 'sys'))"
    " AND (EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'TRIGGER')"
    " OR NOT EXISTS (SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN"
    " ('information_schema', 'performance_schema', 'mysql', 'sys') AND SCHEMA_NAME NOT IN"
    " (SELECT TABLE_SCHEMA FROM information_schema.SCHEMA_PRIVILEGES WHERE PRIVILEGE_TYPE = 'TRIGGER')))"
    " AS untriggered, NOT EXISTS (SELECT 1 FROM information_schema.VIEWS WHERE TABLE_SCHEMA NOT IN"
    " ('information_schema', 'performance_schema', 'mysql', 'sys'))"
    " AND COALESCE(DATABASE(), '') NOT IN ('information_schema', 'mysql', 'sys') AS viewless";

double Now() { return SystemClock().Now(); }

MYSQL* Checked(MYSQL* client) {
  my_bool reconnects = 0;
  if (Own(client) == nullptr || mysql_get_socket(client) < 0 || mysql_more_results(client) != 0 ||
      mysql_get_option(client, MYSQL_OPT_RECONNECT, &reconnects) != 0 || reconnects != 0) {
    throw ConfigurationError("a client is of a connection that is open, has nothing to read and stays what it is");
  }
  return client;
}

struct FreeResult {
  void operator()(MYSQL_RES* result) const { mysql_free_result(result); }
};

/// One result, as the client had it.
struct Result {
  std::unique_ptr<MYSQL_RES, FreeResult> rows;
  std::uint64_t affected = 0;
  std::uint64_t insert_id = 0;
};

/// What a text does, and calls.
struct Statement {
  explicit Statement(std::string_view text)
      : effects(EffectsOf(text)), calls((effects & kCalls) != 0 ? CallsOf(text) : Functions()), sql(text) {}
  explicit Statement(Effects unknown) : effects(unknown) {}

  Effects effects;
  Functions calls;
  std::string_view sql;  ///< Kept by whoever made it.
};

struct Failure {
  unsigned number = 0;
  std::string text;
};

}  // namespace

/// What goes over one connection of the application's, and what is asked in addition.
class Client::Traffic {
 public:
  Traffic(std::shared_ptr<Shim> shim, MYSQL* client)
      : shim_(std::move(shim)), inside_(shim_->inside()), client_(Checked(client)), state_(FlagsNow()) {
    Begin();
  }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;
  ~Traffic() {
    try {
      Settle();
      RecordUncommitted(shim_->datastore(), this, false);
      if (state_.Uncommitted() && !Disabled()) MarkIncomplete(shim_->datastore(), "in_doubt");
    } catch (const AntipodeError&) {
      // There is no scope: it is counted.
    }
  }

  int Query(std::string_view sql) {
    Settle();
    results_.clear();
    failure_ = {};
    if (!Before(Statement(sql))) return Number();
    int next = mysql_real_query(client_, sql.data(), sql.size());
    bool told = true;  // Whether counts of rows say what was changed.
    std::uint64_t changed = 0;
    while (next == 0) {
      NoteGtids();
      Result& result = results_.emplace_back();
      if (mysql_field_count(client_) != 0) {
        told = false;
        result.rows.reset(mysql_store_result(client_));
        if (!result.rows) break;
        hinted_ = hinted_ || (client_->server_status & SERVER_SESSION_STATE_CHANGED) != 0;
      }
      result.affected = mysql_affected_rows(client_);
      result.insert_id = mysql_insert_id(client_);
      changed += result.affected;
      next = mysql_next_result(client_);
    }
    if (next >= 0) {
      failure_ = {mysql_errno(client_), mysql_error(client_)};
      if (failure_.number == 0) failure_ = {CR_SERVER_LOST, "the client does not say why it failed"};
      if (!results_.empty() && next == 0) results_.pop_back();  // Its rows did not come.
    }
    After(told ? std::optional(changed) : std::nullopt);
    return results_.empty() ? Number() : 0;
  }

  MYSQL_RES* StoreResult() { return results_.empty() ? nullptr : results_.front().rows.release(); }
  [[nodiscard]] std::uint64_t AffectedRows() const { return results_.empty() ? 0 : results_.front().affected; }
  [[nodiscard]] std::uint64_t InsertId() const { return results_.empty() ? 0 : results_.front().insert_id; }
  [[nodiscard]] const Failure& failure() const { return failure_; }

  int NextResult() {
    if (!results_.empty()) results_.pop_front();
    if (!results_.empty()) return 0;
    return failure_.number == 0 ? -1 : Number();
  }

  int Prepare(MYSQL_STMT* statement, std::string_view sql) {
    Settle();
    const auto& text = texts_.insert_or_assign(statement, std::string(sql)).first->second;
    prepared_.insert_or_assign(statement, Statement(text));
    return mysql_stmt_prepare(statement, sql.data(), sql.size());
  }

  int Execute(MYSQL_STMT* statement) {
    Settle();
    results_.clear();
    failure_ = {};
    const auto found = prepared_.find(statement);
    const Statement unknown(kReads | kWrites | kCommits | kEnds);
    if (!Before(found == prepared_.end() ? unknown : found->second)) return Number();
    const bool rows = mysql_stmt_field_count(statement) != 0;
    int failed = mysql_stmt_execute(statement);
    if (failed == 0) NoteGtids();
    if (failed == 0 && mysql_stmt_field_count(statement) != 0) {
      failed = mysql_stmt_store_result(statement);
      hinted_ = failed == 0 && (client_->server_status & SERVER_SESSION_STATE_CHANGED) != 0;
    }
    if (failed != 0) failure_ = {mysql_stmt_errno(statement), mysql_stmt_error(statement)};
    if (failed == 0 && mysql_more_results(client_) != 0) {
      Begun();
      return 0;
    }
    After(rows ? std::nullopt : std::optional(std::uint64_t{mysql_stmt_affected_rows(statement)}));
    return Number();
  }

  int NextResult(MYSQL_STMT* statement) {
    failure_ = {};
    const int next = mysql_stmt_next_result(statement);
    if (!unread_) return next;
    int failed = std::max(next, 0);
    if (next == 0) NoteGtids();
    if (next == 0 && mysql_stmt_field_count(statement) != 0) failed = mysql_stmt_store_result(statement);
    if (failed != 0) failure_ = {mysql_stmt_errno(statement), mysql_stmt_error(statement)};
    if (failed != 0 || mysql_more_results(client_) == 0) AllRead();
    return next < 0 ? next : Number();
  }

  int Reset() {
    Settle();
    const bool doubtful = state_.Uncommitted();
    if (mysql_reset_connection(client_) != 0) {
      if (doubtful) MarkIncomplete(shim_->datastore(), "in_doubt");
      return static_cast<int>(mysql_errno(client_));
    }
    state_ = SessionState(FlagsNow());
    RecordUncommitted(shim_->datastore(), this, false);
    Begin();
    return 0;
  }

 private:
  [[nodiscard]] Flags FlagsNow() const {
    const unsigned status = client_->server_status;
    return {(status & SERVER_STATUS_AUTOCOMMIT) != 0, (status & SERVER_STATUS_IN_TRANS) != 0};
  }
  [[nodiscard]] int Number() const { return static_cast<int>(failure_.number); }

  /// Finds out what the server is, on the application's connection, and leaves no transaction open that it has not.
  void Begin() {
    const bool before = FlagsNow().in_transaction;
    session_ = std::make_unique<Session>(client_, kAskS, inside_.runs);
    if (!before && FlagsNow().in_transaction) session_->connection.Ask("ROLLBACK");
    inside_.reach.Knows(session_->facts);
    state_.Reaches(session_->facts.server);
    tracked_ = true;
  }

  [[nodiscard]] Effects EffectsHere(const Statement& statement) const {
    Effects effects = statement.effects;
    // MariaDB shows its tables without reading any.
    if (session_->facts.flavor == Flavor::kMariaDb) effects &= ~kMaySnapshot;
    return (effects & kCalls) != 0 && !MayWrite(statement.calls) ? effects & ~kCalls : effects;
  }

  /// Whether functions may write; one that nobody declared is counted.
  [[nodiscard]] bool MayWrite(const Functions& called) const {
    bool writes = false;
    std::string unknown;
    for (const std::string& each : CallsOf(called, session_->facts.flavor)) {
      if (inside_.readonly_functions.count(each) != 0) continue;
      writes = true;
      if (unknown.empty() && !IsOfSequence(each)) unknown = each;
    }
    if (unknown.empty() || Disabled()) return writes;
    const std::string& datastore = shim_->datastore();
    Count("unknown_function", datastore);
    WarnOnce("unknown_function", datastore, unknown,
             "a statement to '" + datastore + "' calls " + unknown +
                 "(), which may write: whether it did is asked after it. Where it only reads, declare it in "
                 "readonly_functions");
    return writes;
  }

  // Statements.

  /// Holds a statement back as it must be; false where the connection is lost.
  bool Before(const Statement& statement) {
    if (Disabled()) return true;
    Effects effects = EffectsHere(statement);
    stale_ = std::make_shared<StaleRead>();
    std::shared_ptr<Floor> floor;
    double until_s = 0;
    try {
      // The client may have no error to tell of one that was given up in the middle of an answer.
      if (session_->connection.lost()) throw Lost("the connection is lost", 0);
      session_->connection.Within(kAskS);
      if (!tracked_) session_->Track();
      tracked_ = true;
      floor = FloorOf(effects);
      if (floor) {
        until_s = Now() + floor->PollS();
        HoldBack(floor, effects);
      }
      if (WritesByView(effects, statement.sql)) effects |= kCalls;
    } catch (const Lost& error) {
      if (floor && Now() >= until_s) floor->Expire(Unreachable(error.what()));
      failure_ = {error.number() == 0 ? CR_SERVER_LOST : error.number(), error.what()};
      return false;
    }
    if ((effects & kTracking) != 0) tracked_ = false;  // Asked for again after it.
    numbers_ = numbers_ || (effects & kNumbers) != 0;
    const bool defines = (effects & kDefines) == kDefines;
    if (defines || (effects & kNames) != 0) seen_.Forget();
    if (defines) inside_.views.Forget(session_->facts.server);
    effects_ = effects;
    hinted_ = false;
    state_.Starts(effects, Now());
    return true;
  }

  /// Whether what a statement reads is a view that may write, which no reply shows: MariaDB hints at it after rows, and
  /// MySQL at the end of a transaction.
  bool WritesByView(Effects effects, std::string_view sql) {
    const Facts& facts = session_->facts;
    const bool read = (effects & (kReads | kWrites | kCalls | kNames)) == kReads;
    if (!read || facts.flavor != Flavor::kMySql || !facts.problems.empty() || !state_.Autonomous()) return false;
    if (inside_.views.Empty(facts.server, Now()) || !CurrentScope()) return false;
    const std::string_view schema = client_->db == nullptr ? "" : client_->db;
    if (schema != schema_) seen_.Forget();
    schema_ = schema;
    session_->connection.Within(kAskS);
    const Asked asked = [this](const std::string& question) { return session_->connection.Rows(question); };
    const std::set<std::string> names = NamesRead(sql);
    if (names.empty()) return false;
    const std::set<std::string> views = inside_.views.Views(facts.server, names, asked, Now());
    return seen_.MayWrite(views, facts.flavor, inside_.readonly_functions, asked, Now());
  }

  std::shared_ptr<Floor> FloorOf(Effects effects) {
    const bool reads = (effects & kReads) != 0;
    const bool writes = (effects & kWrites) != 0;
    if (reads && (!writes || (effects & kCommits) != 0)) return Floor::Current(*shim_, true, this, stale_);
    const bool opens = (effects & kMaySnapshot) != 0 || (writes && (effects & kEnds) == 0);
    return reads || (opens && state_.Fresh()) ? Floor::Current(*shim_, false, nullptr, stale_) : nullptr;
  }

  void NoteGtids() {
    if (Disabled()) return;
    session_->connection.NoteGtids();
    Minted(session_->connection.TakeGtids());
  }

  /// Notes the writes that a reply reported; false where these are none.
  bool Minted(const std::string& gtids) {
    if (gtids.empty()) return false;
    last_gtid_ = gtids;
    if (state_.Preparing()) return true;
    try {
      for (WriteId& each : Committed(session_->facts.flavor, gtids, inside_.runs, shim_->datastore())) {
        if (!numbers_ && !Owns(each)) trouble_ = kForeign;
        minted_.push_back(std::move(each));
      }
      state_.Committed();
      return true;
    } catch (const NotGtids&) {
      return false;  // They are asked for.
    }
  }

  [[nodiscard]] bool Owns(const WriteId& write) const {
    const Facts& facts = session_->facts;
    if (facts.group) return true;  // Members number by the name of the group.
    if (facts.flavor == Flavor::kMySql) return write.key.substr(0, 36) == facts.server.substr(0, 36);
    const std::string id = "." + std::to_string(facts.server_id);
    return write.key.size() > id.size() && write.key.substr(write.key.size() - id.size()) == id;
  }

  /// Takes in how a call ended, and enters what it committed.
  void After(std::optional<std::uint64_t> changed) {
    if (Disabled()) return;
    if (failure_.number == 0 || !results_.empty()) stale_->Answered();
    bool doubtful = false;
    Due due = Due::kNothing;
    const bool lost = failure_.number != 0 && IsOfClient(failure_.number);
    if (lost) {
      doubtful = state_.Lost();
    } else {
      const End end = failure_.number == 0 ? End::kDone : IsEnding(failure_.number) ? End::kFailed : End::kRefused;
      const bool told = (effects_ & (kCommits | kSeveral)) == 0;
      due = state_.Ended(end, told ? changed : std::nullopt, failure_.number, mysql_warning_count(client_) != 0,
                         FlagsNow());
    }
    // MariaDB hints at what a function wrote in a read, whose rows come without a position.
    const bool hinted = hinted_ && session_->facts.flavor == Flavor::kMariaDb && state_.Autonomous();
    RecordUncommitted(shim_->datastore(), this, !lost && state_.Uncommitted());
    if (due == Due::kSample || (hinted && due == Due::kNothing && minted_.empty())) Sample(true);
    if (due == Due::kPerhaps) Sample(false);
    for (const WriteId& each : std::exchange(minted_, {})) RecordWrite(each);
    if (doubtful) MarkIncomplete(shim_->datastore(), "in_doubt");
    if (due == Due::kUncovered) Uncovered("it is not logged with a number, or prepared for anybody to commit");
  }

  /// The call has more results, which the application reads: nobody knows yet what it committed.
  void Begun() {
    if (Disabled()) return;
    stale_->Answered();
    unread_in_ = CurrentScope();
    unread_.emplace(unread_in_);
    if (state_.Doubtful()) unread_->Unread(shim_->datastore());
  }

  /// All results were read of what began in that scope.
  void AllRead() {
    const ScopeGuard guard(std::exchange(unread_in_, nullptr));
    After(std::nullopt);
    unread_.reset();
  }

  /// Another call comes, or none: what was not read yet was read past this client, or is given up.
  void Settle() {
    if (!unread_) return;
    if (mysql_more_results(client_) == 0) {
      failure_ = {mysql_errno(client_), mysql_error(client_)};
      NoteGtids();
      return AllRead();
    }
    const ScopeGuard guard(std::exchange(unread_in_, nullptr));
    const bool doubtful = state_.Lost();
    for (const WriteId& each : std::exchange(minted_, {})) RecordWrite(each);
    if (doubtful) Uncovered("results of a prepared statement were not read");
    unread_.reset();
  }

  /// A write for which no position will ever stand, nor a later one of the primary.
  void Uncovered(const std::string& why) {
    const std::string& datastore = shim_->datastore();
    Count("uncovered_write", datastore);
    WarnOnce("uncovered_write", datastore, why, "a write to '" + datastore + "' cannot be waited for: " + why);
    MarkIncomplete(datastore, "in_doubt");
  }

  /// Whether nothing was written that no reply showed. Rows and errors come without positions: the next reply of MySQL
  /// says whether there is one. Throws as `Connection`.
  bool ToldOfAll() {
    if (session_->facts.flavor != Flavor::kMySql || !tracked_ || last_gtid_.empty()) return false;
    session_->connection.Ask("DO 0");
    const bool more = (client_->server_status & SERVER_SESSION_STATE_CHANGED) != 0;
    return !more || Minted(session_->connection.TakeGtids());
  }

  /// Asks for the position of a write that came without one, or may have been.
  void Sample(bool certain) {
    const Facts& facts = session_->facts;
    const std::string& datastore = shim_->datastore();
    const auto unsampled = [&](const std::string& why) { Shim::Inside::Unsampled(datastore, why); };
    if (!facts.unnumbered.empty()) return Uncovered(Joined(facts.unnumbered));
    if (!trouble_.empty() || !facts.problems.empty()) return unsampled(Joined({trouble_, Joined(facts.problems)}));
    const bool mysql = facts.flavor == Flavor::kMySql;
    try {
      session_->connection.Within(kAskS);
      if (!certain && ToldOfAll()) return;
      const Row row =
          session_->connection
              .Rows((mysql ? CoverQuery(facts.flavor) : "SELECT @@SESSION.last_gtid AS gtid") + std::string(kWho))
              .at(0);
      const bool same = In(row, "server_id") == std::to_string(facts.server_id);
      const bool read_only = In(row, "read_only") != "0";
      if (same && read_only && shim_->reads_from() == ReadsFrom::kReplica) return;  // It took no write.
      if (!same || read_only) return unsampled("another server answered than the one that committed it");
      if (mysql) return Sampled(row);
      const std::string& gtid = In(row, "gtid");
      if (gtid.empty() && !certain) return;
      if (gtid.empty()) return unsampled("its session knows of none");
      if (gtid != last_gtid_ && !Minted(gtid)) unsampled("it is no GTID: " + gtid);
    } catch (const NotGtids& error) {
      Uncovered("the server gives new writes no GTIDs: " + std::string(error.what()));
    } catch (const Error& error) {
      unsampled(error.what());
    }
  }

  void Sampled(const Row& row) {
    bool any = false;
    for (WriteId& each : Covered(Flavor::kMySql, row, shim_->datastore())) {
      if (!Owns(each)) continue;
      any = true;
      minted_.push_back(std::move(each));
    }
    if (!any) Shim::Inside::Unsampled(shim_->datastore(), "its server has given none yet");
  }

  // Reads.

  /// Waits until the connection shows what is demanded. Throws as `Query`, or Lost.
  void HoldBack(const std::shared_ptr<Floor>& floor, Effects effects) {
    inside_.reach.Require(session_->facts, shim_->datastore());
    if (!trouble_.empty()) throw ConfigurationError("reads of '" + shim_->datastore() + "' cannot wait: " + trouble_);
    const Verdict verdict = state_.Judge(floor, effects, Now());
    if (verdict == Verdict::kPass) return floor->Pass();
    session_->connection.Within(floor->PollS());
    const bool renews = verdict != Verdict::kHold && ReadsCommitted();
    if (verdict == Verdict::kOldSnapshot && !renews) return Stale(*floor);
    Observation seen;
    const auto look = [&](double timeout_s) {
      try {
        return seen = Look(*floor, renews, timeout_s);
      } catch (const Lost& error) {
        throw Unreachable(error.what());
      } catch (const Error& error) {
        return Undecidable(*floor, error.what());
      }
    };
    try {
      floor->Hold(look, shim_.get());
    } catch (const Unreachable& error) {
      if (session_->connection.lost()) throw Lost(error.what(), 0);
      throw Error(error.what(), 0);
    }
    session_->connection.Within(kAskS);
    const bool unseen = verdict == Verdict::kTriggered || verdict == Verdict::kLocked;
    if (unseen && !renews && !Untriggered(verdict)) return Stale(*floor);
    if (!floor->Served()) state_.Passed(floor, seen, verdict != Verdict::kHold, Now());
  }

  void Stale(Floor& floor) {
    floor.FailSnapshot(StaleSnapshot("this connection to '" + shim_->datastore() +
                                     "' reads from a snapshot that is older than what the barrier waited for: commit "
                                     "or roll back its transaction before the read"),
                       [this](const Floor& other) { return state_.Shows(other); });
  }

  bool ReadsCommitted() {
    const char* sql = session_->facts.flavor == Flavor::kMySql ? "SELECT @@SESSION.transaction_isolation AS level"
                                                               : "SELECT @@SESSION.tx_isolation AS level";
    return state_.ReadsCommitted(In(session_->connection.Rows(sql).at(0), "level"));
  }
  bool Untriggered(Verdict verdict) {
    const Row row = session_->connection.Rows(kUntriggered).at(0);
    return In(row, "untriggered") == "1" && (verdict == Verdict::kTriggered || In(row, "viewless") == "1");
  }

  /// Polls without opening the application's snapshot, where that can be.
  Observation Look(Floor& floor, bool renews, double timeout_s) {
    const std::set<WriteId> writes = floor.writes();
    const std::set<Promise> promises = floor.promises();
    const auto shown = [&](const std::set<Promise>& asked) {
      return ShownBy(*session_, inside_, writes, asked, timeout_s);
    };
    if (promises.empty() || renews || state_.Autonomous()) return shown(promises);
    if (!state_.InTransaction() && !state_.IsolatedOnce()) {
      Observation found = shown(promises);
      session_->connection.Ask("ROLLBACK");  // It opened a transaction, of which the application knows nothing.
      state_.Heard(FlagsNow());
      return found;
    }
    if (ReadsCommitted()) return shown(promises);
    Observation first = shown({});
    for (const WriteId& each : writes) {
      if (first.Of(each).first != Status::kVisible) return first;  // Records are checked once the writes are there.
    }
    Observation found = shown(promises);
    state_.SnapshotTaken();
    for (const Promise& each : promises) {
      if (found.Of(each).first != Status::kNotYet) continue;
      Stale(floor);
      break;
    }
    return found;
  }

  std::shared_ptr<Shim> shim_;
  Shim::Inside& inside_;
  MYSQL* client_;
  std::unique_ptr<Session> session_;
  SessionState state_;
  bool tracked_ = false;  ///< Replies carry positions.
  bool numbers_ = false;  ///< The application gives numbers of other servers.
  std::string trouble_;   ///< What makes worthless what is shown here; empty where nothing does.
  std::string last_gtid_;
  std::map<MYSQL_STMT*, std::string> texts_;
  std::map<MYSQL_STMT*, Statement> prepared_;
  ViewsSeen seen_;
  std::string schema_;  ///< In which names were asked about.
  // Of the call in flight, or the last one.
  Effects effects_ = 0;
  bool hinted_ = false;
  std::shared_ptr<StaleRead> stale_ =
      std::make_shared<StaleRead>();  ///< Counts the read in flight once it is answered.
  std::vector<WriteId> minted_;
  std::optional<OpenBranch> unread_;  ///< While more results are to be read, of what began in that scope.
  std::shared_ptr<Scope> unread_in_;
  std::deque<Result> results_;
  Failure failure_;
};

Client::Client(std::shared_ptr<Shim> shim, st_mysql* connection)
    : traffic_(std::make_unique<Traffic>(std::move(shim), connection)) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

int Client::Query(std::string_view sql) { return traffic_->Query(sql); }
st_mysql_res* Client::StoreResult() { return traffic_->StoreResult(); }
std::uint64_t Client::AffectedRows() const { return traffic_->AffectedRows(); }
std::uint64_t Client::InsertId() const { return traffic_->InsertId(); }
int Client::NextResult() { return traffic_->NextResult(); }
unsigned Client::Errno() const { return traffic_->failure().number; }
const std::string& Client::ErrorText() const { return traffic_->failure().text; }
int Client::Prepare(st_mysql_stmt* statement, std::string_view sql) { return traffic_->Prepare(statement, sql); }
int Client::Execute(st_mysql_stmt* statement) { return traffic_->Execute(statement); }
int Client::NextResult(st_mysql_stmt* statement) { return traffic_->NextResult(statement); }
int Client::Reset() { return traffic_->Reset(); }

}  // namespace antipode::mysql
