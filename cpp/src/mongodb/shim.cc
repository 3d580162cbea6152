#include <algorithm>
#include <atomic>
#include <limits>

#include "antipode/clock.h"
#include "antipode/floor.h"
#include "antipode/mongodb.h"
#include "antipode/observer.h"
#include "antipode/scope.h"
#include "antipode/settings.h"
#include "mongodb/beside.h"
#include "mongodb/inside.h"
#include "mongodb/link.h"
#include "mongodb/position.h"
#include "mongodb/promises.h"
#include "mongodb/transaction.h"

namespace antipode::mongodb {
namespace {

/// The longest that a server may hold one read back, in seconds.
constexpr double kSliceS = 1;
constexpr int kTimeIsUp = 50;
/// The time of a read concern that the server has not heard of.
constexpr int kUnheard = 72;

/// The library's own connection to the server where a process reads. Not pinned: the server may roll back under it.
class MongoEndpoint final : public Endpoint {
 public:
  MongoEndpoint(const Uri& uri, const Target& target, std::string database, ReadsFrom reads_from, LogHistory& history)
      : client_(mongoc_client_new_from_uri(uri.get())),
        asked_(client_.get()),
        majority_(target.majority_reads),
        database_(std::move(database)),
        reads_from_(reads_from),
        history_(history) {
    mongoc_client_set_error_api(client_.get(), MONGOC_ERROR_API_VERSION_2);
  }

  /// The time limits of a client of libmongoc are given when it is made, and hold for each question.
  [[nodiscard]] bool EndsInTime() const override { return false; }
  Observation Observe(const std::set<WriteId>& writes, double) override {
    return Asked([&](const ServerState& state) { return Shown(state, writes, majority_, history_, asked_); });
  }
  Observation Promised(const std::set<Promise>& promises, double) override {
    return Asked([&](const ServerState& state) {
      Doc search = SearchRecords(promises);
      if (majority_) search.Add("readConcern", Only("level", "majority"));
      Observation shown;
      shown.server = state.incarnation;
      shown.promises = RecordsIn(asked_.Ask(database_, search, true).bson(), promises);
      return shown;
    });
  }
  bool IsReplica(double) override {
    return Answered([&] { return !asked_.Hello(true).primary; });
  }

 private:
  template <typename Look>
  Observation Asked(Look look) {
    return Answered([&] {
      const ServerState state = asked_.Hello(true);
      if (reads_from_ == ReadsFrom::kPrimary && !state.primary) {
        throw Unreachable("the server is not primary any more");
      }
      return look(state);
    });
  }

  template <typename Question>
  static auto Answered(Question question) -> decltype(question()) {
    try {
      return question();
    } catch (const Error& error) {
      if (Passes(error)) throw Unreachable(error.what());
      throw;
    }
  }

  struct Destroy {
    void operator()(mongoc_client_t* client) const { mongoc_client_destroy(client); }
  };
  std::unique_ptr<mongoc_client_t, Destroy> client_;
  Link asked_;
  bool majority_;
  std::string database_;
  ReadsFrom reads_from_;
  LogHistory& history_;
};

/// A document, what was deleted before it, and what the last reply said.
struct Answer {
  std::optional<Doc> document;
  Lineage dead;
  Told told;
};

/// How long, and for what, a server may hold a read back.
struct Patience {
  std::optional<std::uint64_t> after;
  std::optional<double> limit_s;
};

/// The records of promises, and what covers them; none where that is not known.
struct Records {
  std::map<Promise, Status> found;
  std::optional<WriteId> covering;
};

/// Throws Error where a server refused what was written.
void CheckWritten(const bson_t& reply) {
  const auto refused = TextAt(reply, "writeErrors.0.errmsg");
  if (refused) throw Error(*refused, static_cast<int>(IntAt(reply, "writeErrors.0.code").value_or(0)));
}

std::optional<std::string> TextOf(const Value& value, const std::string& field) {
  if (BSON_ITER_HOLDS_NULL(&value.at)) return std::nullopt;
  if (BSON_ITER_HOLDS_UTF8(&value.at)) return *TextIn(value);
  if (!BSON_ITER_HOLDS_BINARY(&value.at)) throw Error("the field '" + field + "' holds neither text nor bytes");
  const std::uint8_t* data = nullptr;
  std::uint32_t size = 0;
  bson_iter_binary(&value.at, nullptr, &size, &data);
  return std::string(reinterpret_cast<const char*>(data), size);
}

}  // namespace

/// What the shim knows and holds: a separate class, so that the header names nothing of the client.
class Shim::Table {
 public:
  Table(Shim& shim, const std::string& uri, Options options)
      : shim_(shim), target_(uri), options_(std::move(options)), pool_(std::make_shared<Pool>(target_.uri)) {}

  [[nodiscard]] const Target& target() const { return target_; }
  [[nodiscard]] LogHistory& history() { return history_; }
  [[nodiscard]] std::shared_ptr<Pool> pool() {
    const std::lock_guard guard(lock_);
    if (!pool_) throw Error("the shim of '" + shim_.datastore() + "' is closed");
    return pool_;
  }
  void Close() {
    const std::lock_guard guard(lock_);
    pool_.reset();
  }

  void Forked() {
    const bool closed = pool_ == nullptr;
    Renew(history_);
    Renew(numbers_, shim_.clock());
    Renew(lock_);
    Renew(pool_);
    Renew(set_name_);
    if (!closed) pool_ = std::make_shared<Pool>(target_.uri);
  }

  [[nodiscard]] const std::string& database() const { return options_.database; }

  Lineage Write(std::string_view key, std::string_view value, const Lineage& base,
                const std::optional<Promise>& fulfils) {
    Doc document = Only("_id", key);
    document.Add(options_.field, Bytes{value}).Add("_ap", Whole(Only("v", Bytes{value}), base));
    const Doc update = Doc().Add("q", Only("_id", key)).Add("u", document).Add("upsert", true);
    const Doc command = Doc().Add("update", options_.collection).Add("updates", List(update));
    return fulfils ? Keep(command, base, *fulfils) : Send(command, base);
  }

  Lineage Delete(std::string_view key, const Lineage& base) {
    Send(Bury(options_.collection, key, slot_++, base, numbers_), base);
    const Doc gone = Doc().Add("q", Only("_id", key)).Add("limit", 1);
    return Send(Doc().Add("delete", options_.collection).Add("deletes", List(gone)), base);
  }

  Reading Read(std::string_view key) {
    const auto pool = this->pool();
    Pool::Lease client(*pool);
    LearnSet(*client);
    std::optional<Answer> answer;
    const auto stale = std::make_shared<StaleRead>();
    if (const auto floor = Floor::Current(shim_, true, nullptr, stale)) {
      floor->Hold([&](double timeout_s) { return Held(*client, *floor, key, timeout_s, answer); });
    }
    if (!answer) answer = Find(*client, key, {});
    stale->Answered();
    return Seen(*answer);
  }

  /// Records in a transaction that a promise is fulfilled.
  void Fulfil(Transaction& transaction, const Promise& promise) {
    CheckWritten(transaction.Ask(options_.database, Recording(promise, true)).bson());
  }

  /// Throws PromiseAbandoned where that is why its transaction was refused. `client` is in none any more.
  void Explain(Link& client, const Promise& promise, const Error& error) {
    if (error.code() == kDuplicate && IsAbandoned(client, promise)) throw PromiseAbandoned(promise.id);
  }

  bool IsAbandoned(Link& client, const Promise& promise) {
    const auto found = RecordsIn(client.Ask(options_.database, SearchRecords({promise}), false).bson(), {promise});
    return found.count(promise) > 0 && found.at(promise) == Status::kAbandoned;
  }

  WriteId Named(const Position& position, bool covering) {
    return {shim_.datastore(), position.first, position.second, shim_.clock().Hour(), covering};
  }

 private:
  /// The name of the replica set, which replies do not have.
  void LearnSet(Link& client) {
    {
      const std::lock_guard guard(lock_);
      if (!set_name_.empty()) return;
    }
    const ServerState state = client.Hello(true);
    const std::lock_guard guard(lock_);
    set_name_ = state.set_name;
  }
  [[nodiscard]] std::string SetName() const {
    const std::lock_guard guard(lock_);
    return set_name_;
  }

  Lineage Send(Doc command, const Lineage& base) {
    const auto pool = this->pool();
    Pool::Lease client(*pool);
    LearnSet(*client);
    mongoc_write_concern_append(const_cast<mongoc_write_concern_t*>(mongoc_uri_get_write_concern(target_.uri.get())),
                                command.get());
    try {
      return Written(client->Ask(options_.database, AskingWhere(command), false), base);
    } catch (const NoAnswer& error) {
      if (error.sent()) Mark("in_doubt");
      throw;
    } catch (const Error& error) {
      if (Interrupted(error.code())) Mark("in_doubt");
      throw;
    }
  }

  /// Writes in a transaction that fulfils a promise.
  Lineage Keep(Doc command, const Lineage& base, const Promise& promise) {
    const auto pool = this->pool();
    Pool::Lease client(*pool);
    LearnSet(*client);
    AskingWhere(command);
    Told told;
    try {
      told.operation =
          Committed(client->get(), mongoc_uri_get_write_concern(target_.uri.get()), [&](Transaction& transaction) {
            Fulfil(transaction, promise);
            const Doc reply = transaction.Ask(options_.database, command);
            CheckWritten(reply.bson());
            told.state = ToldBy(reply.bson(), SetName()).state;
          });
    } catch (const NoAnswer& error) {
      if (error.sent()) Mark("in_doubt");
      throw;
    } catch (const Error& error) {
      Explain(*client, promise, error);
      throw;
    }
    told.state = OfOneTerm(told.state, *client);
    return Entered(WritePosition(told, SetName(), target_.majority_writes), base);
  }

  /// Where the primary stands after a commit whose reply does not say it; none where it may have been another's.
  static std::optional<ServerState> OfOneTerm(const std::optional<ServerState>& before, Link& client) {
    try {
      const ServerState after = client.Hello(false);
      const bool one = before && before->primary && after.primary && before->applied.term == after.applied.term;
      return one ? std::optional(after) : std::nullopt;
    } catch (const Error&) {
      return std::nullopt;
    } catch (const Unreachable&) {
      return std::nullopt;
    }
  }

  Lineage Written(const Doc& reply, const Lineage& base) {
    CheckWritten(reply.bson());
    const auto unmet = TextAt(reply.bson(), "writeConcernError.errmsg");
    const std::string set_name = SetName();
    const auto position = WritePosition(ToldBy(reply.bson(), set_name), set_name, target_.majority_writes && !unmet);
    const Lineage lineage = Entered(position, base);
    // It is done at the primary; its code says no more of the write than that.
    if (unmet) throw Error(*unmet);
    return lineage;
  }

  /// Enters what was written.
  Lineage Entered(const std::optional<Position>& position, const Lineage& base) {
    if (position) {
      const WriteId write = Named(*position, false);
      RecordWrite(write);
      return base.Append(write);
    }
    Count("uncovered_write", shim_.datastore());
    Mark("unsampled");
    return base.Marked({shim_.datastore(), "unsampled"});
  }

  void RecordWrite(const WriteId& write) {
    if (const auto scope = CurrentScope()) {
      scope->Append(write);
    } else {
      Count("unscoped_write", shim_.datastore());
    }
  }

  void Mark(std::string_view reason) {
    if (const auto scope = CurrentScope()) scope->MarkIncomplete(shim_.datastore(), reason);
  }

  Doc Answered(Link& client, Doc find, const Patience& patience) {
    Doc concern;
    if (target_.majority_reads) concern.Add("level", "majority");
    if (patience.after) concern.Add("afterClusterTime", Stamp{*patience.after});
    if (!bson_empty(&concern.bson())) find.Add("readConcern", concern);
    if (patience.limit_s) find.Add("maxTimeMS", std::max(1, static_cast<int>(*patience.limit_s * 1'000)));
    return client.Ask(options_.database, AskingWhere(find), true);
  }

  /// The document of a key, and the lineages of deletions where these are part of it. Tombstones are asked for later,
  /// or at the same time, on whatever server answers.
  Answer Find(Link& client, std::string_view key, Patience patience) {
    const Doc find =
        Doc().Add("find", options_.collection).Add("filter", Only("_id", key)).Add("limit", 1).Add("singleBatch", true);
    Doc reply = Answered(client, find, patience);
    Answer answer{DocAt(reply.bson(), "cursor.firstBatch.0"), {}, {}};
    const auto birth = answer.document ? BirthOf(answer.document->bson()) : std::nullopt;
    if (!answer.document || birth) {
      // Documents of a view were inserted in its source, maybe with other ids.
      const std::string born_in = birth ? birth->substr(std::min(birth->size(), birth->find('.') + 1)) : "";
      const bool here = !birth || born_in == options_.collection;
      patience.after = StampAt(reply.bson(), "operationTime");
      const auto id = here ? std::optional<std::string>(key) : std::nullopt;
      reply = Answered(client, SearchTombstones(here ? options_.collection : born_in, id), patience);
      answer.dead = Buried(reply.bson(), shim_.datastore());
    }
    answer.told = ToldBy(reply.bson(), SetName());
    return answer;
  }

  /// Reads where and when all that is demanded is there, and reports what the server showed at the read. The read
  /// carries the wait.
  Observation Held(Link& client, const Floor& floor, std::string_view key, double timeout_s,
                   std::optional<Answer>& answer) {
    answer.reset();
    std::set<WriteId> writes = floor.writes();
    const std::set<Promise> promises = floor.promises();
    const Records records = RecordsOf(client, promises);
    for (const Promise& each : promises) {
      const auto found = records.found.find(each);
      if (found == records.found.end() || found->second != Status::kVisible) return Of(records.found);
    }
    // The server that reads has to show what covers the records.
    if (records.covering) writes.insert(*records.covering);
    // Once the time is up the server is asked for what there is.
    const double block_s = floor.BlockS(std::min(timeout_s, kSliceS));
    Patience patience{std::nullopt, block_s > 0 ? block_s : timeout_s};
    for (const WriteId& each : writes) {
      const auto* version = std::get_if<std::uint64_t>(&each.version);
      if (block_s > 0 && version != nullptr && IsLogOf(each.key, SetName())) {
        patience.after = std::max(patience.after.value_or(0), *version);
      }
    }
    try {
      Answer found = Find(client, key, patience);
      const ServerState state = found.told.state ? *found.told.state : client.Hello(true);
      answer = std::move(found);
      Observation shown = Shown(state, writes, target_.majority_reads, history_, client);
      if (records.covering && shown.Of(*records.covering).first == Status::kVisible) shown.promises = records.found;
      return shown;
    } catch (const Error& error) {
      if (error.code() == kUnheard)
        return Unread(Shown(client.Hello(true), writes, target_.majority_reads, history_, client));
      if (error.code() == kTimeIsUp) return Late(writes, error.what());
      if (Passes(error)) throw Unreachable(error.what());
      throw;
    }
  }

  /// The records of promises, on whatever server answers. Throws Unreachable.
  Records RecordsOf(Link& client, const std::set<Promise>& promises) {
    if (promises.empty()) return {};
    try {
      const Doc reply = Answered(client, SearchRecords(promises), {});
      const auto position = ReadPosition(ToldBy(reply.bson(), SetName()), SetName(), target_.majority_reads);
      if (!position) return {};
      return {RecordsIn(reply.bson(), promises), Named(*position, true)};
    } catch (const Error& error) {
      if (Passes(error)) throw Unreachable(error.what());
      throw;
    }
  }

  static Observation Of(const std::map<Promise, Status>& records) {
    Observation shown;
    shown.promises = records;
    return shown;
  }

  /// A check without a read: what it proves about the past holds, what it showed must be read.
  static Observation Unread(Observation shown) {
    for (auto& [write, status] : shown.statuses) {
      if (status == Status::kVisible) status = Status::kNotYet;
    }
    return shown;
  }

  static Observation Late(const std::set<WriteId>& writes, const std::string& cause) {
    Observation shown;
    for (const WriteId& each : writes) {
      shown.statuses[each] = Status::kNotYet;
      shown.causes[each] = cause;
    }
    return shown;
  }

  Reading Seen(const Answer& answer) {
    Reading reading{std::nullopt, answer.dead};
    if (answer.document) {
      const bson_t& document = answer.document->bson();
      const auto value = At(document, options_.field.c_str());
      const auto [stored, match] = FoundBeside(HolderOf(value), At(document, "_ap"), shim_.datastore());
      if (match == Match::kAbsent || match == Match::kForeign) Count(NameOf(match), shim_.datastore());
      reading.lineage = reading.lineage.Merge(stored);
      if (value) reading.value = TextOf(*value, options_.field);
    }
    const std::string set_name = SetName();
    const auto position = ReadPosition(answer.told, set_name, target_.majority_reads);
    if (position) {
      reading.lineage = reading.lineage.Append(Named(*position, true));
    } else {
      Count("unsampled_read", shim_.datastore());
      reading.lineage = reading.lineage.Marked({shim_.datastore(), "unsampled"});
    }
    const auto scope = CurrentScope();
    if (options_.merge_reads && scope) scope->Merge(reading.lineage);
    return reading;
  }

  Shim& shim_;
  Target target_;
  Options options_;
  LogHistory history_;
  Numbers numbers_{shim_.clock()};
  std::atomic<int> slot_{0};
  mutable std::mutex lock_;
  std::shared_ptr<Pool> pool_;
  std::string set_name_;
};

Shim::Shim(const std::string& datastore, const std::string& uri, const Options& options)
    : Store(datastore, options.reads_from, options.barriers),
      table_(std::make_unique<Table>(*this, uri, options)),
      inside_(std::make_unique<Inside>(table_->target(), table_->history(), options.database)) {
  const std::string& field = options.field;
  if (field.empty() || field.find('.') != std::string::npos || field[0] == '$' || field == "_id" || field == "_ap") {
    throw ConfigurationError("the field must have a plain name other than '_id' and '_ap', not '" + field + "'");
  }
}

Shim::~Shim() { table_->Close(); }

std::shared_ptr<Shim> Shim::Open(const std::string& datastore, const std::string& uri, const Options& options) {
  const std::shared_ptr<Shim> made(new Shim(datastore, uri, options));
  Register(made);
  return made;
}

Lineage Shim::Write(std::string_view key, std::string_view value, const std::optional<Lineage>& lineage,
                    const std::optional<Promise>& fulfils) {
  return table_->Write(key, value, lineage ? *lineage : Current(), fulfils);
}

void Shim::Fulfil(_mongoc_client_session_t* session, const Promise& promise) {
  if (!mongoc_client_session_in_transaction(session)) {
    throw ConfigurationError("a promise is fulfilled in the transaction of its data: start one first");
  }
  Transaction transaction(session);
  try {
    table_->Fulfil(transaction, promise);
  } catch (const Error& error) {
    const auto pool = table_->pool();
    table_->Explain(*Pool::Lease(*pool), promise, error);
    throw;
  }
}

Lineage Shim::Delete(std::string_view key, const std::optional<Lineage>& lineage) {
  return table_->Delete(key, lineage ? *lineage : Current());
}

Reading Shim::Read(std::string_view key) { return table_->Read(key); }

bool Shim::CanPoll() const { return table_->target().direct || reads_from() == ReadsFrom::kPrimary; }

std::unique_ptr<Endpoint> Shim::OpenEndpoint(double timeout_s) {
  const Target& target = table_->target();
  return std::make_unique<MongoEndpoint>(target.Within(timeout_s), target, table_->database(), reads_from(),
                                         table_->history());
}

std::set<WriteId> Shim::Fence(double) {
  try {
    const auto pool = table_->pool();
    Pool::Lease client(*pool);
    const ServerState state = client->Hello(false);
    if (!state.primary) throw Unreachable("the server of '" + datastore() + "' is not primary now");
    return {table_->Named(LocalPosition(state), true)};
  } catch (const Error& error) {
    if (Passes(error)) throw Unreachable(error.what());
    throw;
  }
}

bool Shim::AbandonPromise(const Promise& promise, double timeout_s) {
  const Uri uri = table_->target().Within(timeout_s);
  const std::unique_ptr<mongoc_client_t, void (*)(mongoc_client_t*)> owned(mongoc_client_new_from_uri(uri.get()),
                                                                           mongoc_client_destroy);
  mongoc_client_set_error_api(owned.get(), MONGOC_ERROR_API_VERSION_2);
  Link client(owned.get());
  try {
    const Doc reply = client.Ask(table_->database(), Recording(promise, false), false);
    const auto code = IntAt(reply.bson(), "writeErrors.0.code");
    if (!code) return true;
    if (*code != kDuplicate) throw Unreachable(TextAt(reply.bson(), "writeErrors.0.errmsg").value_or(""));
    return table_->IsAbandoned(client, promise);
  } catch (const Error& error) {
    if (Passes(error)) throw Unreachable(error.what());
    throw;
  }
}

void Shim::Forked() {
  Store::Forked();
  table_->Forked();
  Renew(inside_->members, table_->target());
}

void Shim::Close() {
  Store::Close();
  table_->Close();
}

}  // namespace antipode::mongodb
