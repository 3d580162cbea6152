// Instrumented clients of libmongoc at a primary and at a secondary that lags:
// tests/integration/mongodb/test_libmongoc.py.
#include <mongoc/mongoc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "antipode/barrier.h"
#include "antipode/mongodb_client.h"
#include "antipode/scope.h"
#include "forks.h"

namespace {

constexpr const char* kSet = "antipode";

void Check(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  std::exit(1);
}

/// A document as JSON has it.
struct Document {
  explicit Document(const std::string& json) {
    bson_error_t error;
    of = bson_new_from_json(reinterpret_cast<const std::uint8_t*>(json.data()), -1, &error);
    Check(of != nullptr, json);
  }
  ~Document() { bson_destroy(of); }
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  bson_t* of;
};

std::shared_ptr<antipode::mongodb::Shim> Opened(const std::string& uri, antipode::ReadsFrom reads_from) {
  antipode::mongodb::Options options;
  options.database = "app";
  options.collection = "posts";
  options.reads_from = reads_from;
  return antipode::mongodb::Shim::Open("posts", uri, options);
}

/// A service with a separate client.
struct Service {
  Service(const std::string& at, antipode::ReadsFrom reads_from, const std::string& more = "")
      : address(at),
        uri("mongodb://" + address + "/?directConnection=true" + more),
        shim(Opened(uri, reads_from)),
        native(mongoc_client_new(uri.c_str())),
        client(std::make_unique<antipode::mongodb::Client>(shim, native)),
        notes(mongoc_client_get_collection(native, "app", "notes")) {}
  ~Service() {
    mongoc_collection_destroy(notes);
    client.reset();
    mongoc_client_destroy(native);
    shim->Close();
  }

  /// The last entry that its server has applied, as one integer.
  std::uint64_t Applied() const {
    mongoc_client_t* plain = mongoc_client_new(uri.c_str());
    bson_t reply;
    const Document hello(R"({"hello": 1})");
    Check(mongoc_client_command_simple(plain, "admin", hello.of, nullptr, &reply, nullptr), "its server answers");
    bson_iter_t top;
    bson_iter_t found;
    Check(bson_iter_init(&top, &reply) && bson_iter_find_descendant(&top, "lastWrite.opTime.ts", &found), "a position");
    std::uint32_t seconds = 0;
    std::uint32_t increment = 0;
    bson_iter_timestamp(&found, &seconds, &increment);
    bson_destroy(&reply);
    mongoc_client_destroy(plain);
    return std::uint64_t{seconds} << 32 | increment;
  }

  std::string address;
  std::string uri;
  std::shared_ptr<antipode::mongodb::Shim> shim;
  mongoc_client_t* native;
  std::unique_ptr<antipode::mongodb::Client> client;
  mongoc_collection_t* notes;
};

std::string Concern(const std::string& w) { return R"("writeConcern": {"w": )" + w + "}"; }

bool Insert(Service& at, const std::string& document, const std::string& options = "{}") {
  const Document given(document);
  const Document opts(options);
  return at.client->Call([&] { return mongoc_collection_insert_one(at.notes, given.of, opts.of, nullptr, nullptr); });
}

bool Update(Service& at, const std::string& filter, const std::string& update, const std::string& options = "{}") {
  const Document selector(filter);
  const Document change(update);
  const Document opts(options);
  return at.client->Call(
      [&] { return mongoc_collection_update_many(at.notes, selector.of, change.of, opts.of, nullptr, nullptr); });
}

bool Delete(Service& at, const std::string& filter, const std::string& options = "{}") {
  const Document selector(filter);
  const Document opts(options);
  return at.client->Call(
      [&] { return mongoc_collection_delete_many(at.notes, selector.of, opts.of, nullptr, nullptr); });
}

bool Run(Service& at, const std::string& command, const std::string& options = "{}") {
  const Document asked(command);
  const Document opts(options);
  return at.client->Call(
      [&] { return mongoc_client_write_command_with_opts(at.native, "app", asked.of, opts.of, nullptr, nullptr); });
}

/// Advances a cursor to its end: how many documents it had.
int Count(Service& at, mongoc_cursor_t* cursor) {
  const bson_t* document = nullptr;
  int count = 0;
  while (at.client->Next(cursor, &document)) ++count;
  return count;
}

using Cursor = std::unique_ptr<mongoc_cursor_t, void (*)(mongoc_cursor_t*)>;

Cursor Finding(Service& at, const std::string& filter, const std::string& options = "{}") {
  const Document sought(filter);
  const Document opts(options);
  return {mongoc_collection_find_with_opts(at.notes, sought.of, opts.of, nullptr), mongoc_cursor_destroy};
}

int Find(Service& at, const std::string& filter, const std::string& options = "{}") {
  return Count(at, Finding(at, filter, options).get());
}

int Aggregate(Service& at, const std::string& pipeline, const std::string& options = "{}") {
  const Document stages(pipeline);
  const Document opts(options);
  const Cursor cursor(mongoc_collection_aggregate(at.notes, MONGOC_QUERY_NONE, stages.of, opts.of, nullptr),
                      mongoc_cursor_destroy);
  return Count(at, cursor.get());
}

std::int64_t CountDocuments(Service& at, const std::string& filter) {
  const Document sought(filter);
  return at.client->Call(
      [&] { return mongoc_collection_count_documents(at.notes, sought.of, nullptr, nullptr, nullptr, nullptr); });
}

bool FindAndModify(Service& at, const std::string& filter, const std::string& extra = "{}") {
  const Document sought(filter);
  const Document change(R"({"$inc": {"n": 1}})");
  const Document more(extra);
  mongoc_find_and_modify_opts_t* options = mongoc_find_and_modify_opts_new();
  mongoc_find_and_modify_opts_set_update(options, change.of);
  mongoc_find_and_modify_opts_append(options, more.of);
  const bool done = at.client->Call(
      [&] { return mongoc_collection_find_and_modify_with_opts(at.notes, sought.of, options, nullptr, nullptr); });
  mongoc_find_and_modify_opts_destroy(options);
  return done;
}

std::string Marks() {
  std::string marks;
  for (const antipode::Incomplete& each : antipode::Current().incomplete()) marks += each.reason;
  return marks;
}

/// How many writes the scope has, and its marks.
void Holds(std::size_t writes, const std::string& mark = "") {
  const antipode::Lineage lineage = antipode::Current();
  Check(lineage.writes().size() == writes, std::to_string(lineage.writes().size()) + " writes");
  Check(Marks() == mark, "marks: " + Marks());
}

std::uint64_t Latest() {
  std::uint64_t latest = 0;
  for (const antipode::WriteId& each : antipode::Current().writes()) {
    latest = std::max(latest, std::get<std::uint64_t>(each.version));
  }
  return latest;
}

void BarrierAtRead(double timeout_s = 20) {
  antipode::BarrierOptions options;
  options.timeout = std::chrono::duration<double>(timeout_s);
  options.at = antipode::At::kRead;
  antipode::Barrier(options);
}

template <typename Error>
void Throws(const std::string& what, const std::function<void()>& act) {
  try {
    act();
  } catch (const Error&) {
    return;
  }
  Check(false, what + " throws");
}

/// What writes, in a separate scope: the position is after all that was there before, in the log that has it.
void Writes(Service& near, Service&) {
  using Act = std::function<bool(const std::string&)>;
  const std::map<std::string, Act> ways{
      {"1 insert", [&](const std::string& w) { return Insert(near, R"({"x": 1})", "{" + w + "}"); }},
      {"2 update", [&](const std::string& w) { return Update(near, "{}", R"({"$inc": {"n": 1}})", "{" + w + "}"); }},
      {"3 upsert",
       [&](const std::string& w) {
         return Update(near, R"({"y": "new"})", R"({"$inc": {"n": 1}})", R"({"upsert": true, )" + w + "}");
       }},
      {"4 findAndModify", [&](const std::string& w) { return FindAndModify(near, R"({"_id": 0})", "{" + w + "}"); }},
      {"5 $merge",
       [&](const std::string& w) {
         return Aggregate(near, R"({"pipeline": [{"$addFields": {"at": "$$NOW"}}, {"$merge": "copies"}]})",
                          "{" + w + "}") == 0;
       }},
      {"6 createIndexes",
       [&](const std::string& w) {
         return Run(near, R"({"createIndexes": "notes", "indexes": [{"key": {"x": 1}, "name": "by_x"}]})",
                    "{" + w + "}");
       }},
      {"7 dropIndexes",
       [&](const std::string& w) { return Run(near, R"({"dropIndexes": "notes", "index": "by_x"})", "{" + w + "}"); }},
      {"8 delete", [&](const std::string& w) { return Delete(near, R"({"x": 1})", "{" + w + "}"); }}};
  for (const auto& [name, act] : ways) {
    for (const char* w : {"1", "\"majority\""}) {
      const antipode::ScopeGuard request;
      // An index is created once.
      if (w[0] != '1' && name[0] > '5') Insert(near, R"({"x": 1})");
      if (w[0] != '1' && name == "6 createIndexes") Run(near, R"({"dropIndexes": "notes", "index": "by_x"})");
      if (w[0] != '1' && name == "7 dropIndexes") {
        Run(near, R"({"createIndexes": "notes", "indexes": [{"key": {"x": 1}, "name": "by_x"}]})");
      }
      const std::uint64_t before = near.Applied();
      Check(act(Concern(w)), name);
      Check(before < Latest() && Latest() <= near.Applied(), name + " has its position");
      Check(Marks().empty(), name + " has no mark: " + Marks());
      bool in_set = w[0] == '1';
      for (const antipode::WriteId& each : antipode::Current().writes()) {
        Check(each.key.rfind(kSet, 0) == 0, name + " is of " + each.key);
        in_set = in_set || (each.key == kSet && std::get<std::uint64_t>(each.version) == Latest());
      }
      Check(in_set, name + " is what a majority has");
      antipode::BarrierOptions options;
      options.timeout = std::chrono::seconds(20);
      antipode::Barrier(options);
    }
  }
}

void Nothing(Service& near, Service&) {
  const antipode::ScopeGuard request;
  Check(!Insert(near, R"({"_id": 0})"), "a duplicate is refused");
  Check(Update(near, R"({"_id": "none"})", R"({"$set": {"n": 1}})"), "an update of nothing is done");
  Check(Delete(near, R"({"_id": "none"})"), "a deletion of nothing is done");
  Check(Find(near, "{}") == 2, "it finds both");
  Holds(0);
}

/// What was written before an error enters; with `w: 0` nobody knows.
void Bulk(Service& near, Service&) {
  for (const char* options : {"{}", R"({"writeConcern": {"w": 0}})"}) {
    const antipode::ScopeGuard request;
    const Document opts(options);
    mongoc_bulk_operation_t* bulk = mongoc_collection_create_bulk_operation_with_opts(near.notes, opts.of);
    for (const char* each : {R"({"b": 1})", R"({"_id": 0})", R"({"b": 2})"}) {
      mongoc_bulk_operation_insert_with_opts(bulk, Document(each).of, nullptr, nullptr);
    }
    bson_t reply;
    const bool done = near.client->Call([&] { return mongoc_bulk_operation_execute(bulk, &reply, nullptr) != 0; });
    bson_destroy(&reply);
    mongoc_bulk_operation_destroy(bulk);
    const bool waits = std::strcmp(options, "{}") == 0;
    Check(!waits || !done, "the error is the application's");
    Holds(waits ? 1 : 0, waits ? "" : "in_doubt");
  }
}

/// The server closes the connection, once: the client is answered in the end.
void Repeated(Service& near, Service&) {
  const antipode::ScopeGuard request;
  Check(Insert(near, R"({"r": 1})"), "it is repeated");
  Holds(1);
}

/// As `Repeated`, with a client that does not repeat.
void Doubtful(Service& near, Service&) {
  Service once(near.address, antipode::ReadsFrom::kPrimary, "&retryWrites=false");
  const antipode::ScopeGuard request;
  Check(!Insert(once, R"({"r": 1})"), "it fails");
  Holds(0, "in_doubt");
}

struct Session {
  explicit Session(Service& at) : of(mongoc_client_start_session(at.native, nullptr, nullptr)) {
    Check(mongoc_client_session_append(of, &options, nullptr), "a session");
  }
  ~Session() {
    bson_destroy(&options);
    mongoc_client_session_destroy(of);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  bool Start() const { return mongoc_client_session_start_transaction(of, nullptr, nullptr); }
  std::string Options() const {
    char* json = bson_as_canonical_extended_json(&options, nullptr);
    std::string text(json);
    bson_free(json);
    return text;
  }
  mongoc_client_session_t* of;
  bson_t options = BSON_INITIALIZER;
};

bool Commit(Service& at, const Session& session) {
  return at.client->Call([&] { return mongoc_client_session_commit_transaction(session.of, nullptr, nullptr); });
}

/// Nothing enters before the commit, and nothing of what is aborted or only read.
void Transactions(Service& near, Service&) {
  const Session session(near);
  {
    const antipode::ScopeGuard request;
    session.Start();
    Insert(near, R"({"t": 1})", session.Options());
    Holds(0);
    Check(near.client->Call([&] { return mongoc_client_session_abort_transaction(session.of, nullptr); }), "it aborts");
    session.Start();
    Find(near, "{}", session.Options());
    Check(Commit(near, session), "it commits");
    Holds(0);
    session.Start();
    Insert(near, R"({"t": 2})", session.Options());
    const std::uint64_t before = near.Applied();
    Check(Commit(near, session), "it commits");
    Holds(1);
    Check(Latest() > before, "the position is that of the commit");
  }
  const antipode::ScopeGuard request;
  const auto work = [](mongoc_client_session_t*, void* context, bson_t**, bson_error_t*) {
    const auto& [at, of] = *static_cast<std::pair<Service*, const Session*>*>(context);
    return Insert(*at, R"({"t": 3})", of->Options());
  };
  std::pair<Service*, const Session*> context{&near, &session};
  Check(near.client->Call([&] {
    return mongoc_client_session_with_transaction(session.of, work, nullptr, &context, nullptr, nullptr);
  }),
        "it commits");
  Holds(1);
}

/// What leaves while a transaction that wrote is open: a lint of a dry run, once here.
void Uncommitted(Service& near, Service&) {
  const Session session(near);
  const antipode::ScopeGuard request;
  const auto leaves = [] { return antipode::CurrentScope()->text(); };
  session.Start();
  Find(near, "{}", session.Options());
  leaves();
  Find(near, "{}");
  Insert(near, R"({"t": 1})", session.Options());
  leaves();
  Find(near, "{}", session.Options());
  Find(near, "{}");
  Check(Commit(near, session), "it commits");
  leaves();
  session.Start();
  Insert(near, R"({"t": 2})", session.Options());
  Check(near.client->Call([&] { return mongoc_client_session_abort_transaction(session.of, nullptr); }), "it aborts");
  leaves();
}

/// The server refuses the commit once, in the middle of it.
void LostCommit(Service& near, Service&) {
  const Session session(near);
  const antipode::ScopeGuard request;
  session.Start();
  Insert(near, R"({"t": 1})", session.Options());
  Check(!Commit(near, session), "nobody knows");
  Holds(0, "in_doubt");
  Check(Commit(near, session), "it is known now");
  Holds(1, "in_doubt");
}

void Held(Service& near, Service& far) {
  const std::map<std::string, std::function<bool()>> reads{
      {"find", [&] { return Find(far, R"({"name": "find"})") == 1; }},
      {"aggregate", [&] { return Aggregate(far, R"({"pipeline": [{"$match": {"name": "aggregate"}}]})") == 1; }},
      {"count", [&] { return CountDocuments(far, R"({"name": "count"})") == 1; }}};
  for (const auto& [name, read] : reads) {
    const antipode::ScopeGuard request;
    Check(Insert(near, R"({"name": ")" + name + "\"}", R"({"writeConcern": {"w": 1}})"), "it inserts");
    BarrierAtRead();
    Check(read(), name + " sees it");
  }
}

/// What was read too early is never handed out.
void Late(Service& near, Service& far) {
  const antipode::ScopeGuard request;
  const Cursor open = Finding(far, "{}", R"({"batchSize": 1})");
  const bson_t* document = nullptr;
  Check(far.client->Next(open.get(), &document), "a first batch");
  Insert(near, R"({"name": "late"})", R"({"writeConcern": {"w": 1}})");
  BarrierAtRead(0.2);
  const Cursor cursor = Finding(far, "{}");
  for (int n = 0; n < 2; ++n) {
    Throws<antipode::BarrierTimeout>("a cursor", [&] { far.client->Next(cursor.get(), &document); });
    Check(document == nullptr, "no document is left");
  }
  Throws<antipode::BarrierTimeout>("a count", [&] { CountDocuments(far, "{}"); });
  Throws<antipode::BarrierTimeout>("the next batch", [&] {
    while (far.client->Next(open.get(), &document)) continue;
  });
  Check(near.client->Call([&] {
    return mongoc_client_command_simple(near.native, "admin", Document(R"({"ping": 1})").of, nullptr, nullptr, nullptr);
  }),
        "what is no read goes on");
}

/// A snapshot from before the barrier is stale; a new one shows it.
void Snapshots(Service& near, Service&) {
  const Session session(near);
  const antipode::ScopeGuard request;
  session.Start();
  Find(near, "{}", session.Options());
  Insert(near, R"({"_id": "later"})");
  BarrierAtRead();
  Throws<antipode::StaleSnapshot>("an old snapshot", [&] { Find(near, "{}", session.Options()); });
  near.client->Call([&] { return mongoc_client_session_abort_transaction(session.of, nullptr); });
  session.Start();
  for (int n = 0; n < 2; ++n) Check(Find(near, R"({"_id": "later"})", session.Options()) == 1, "a new one shows it");
  Commit(near, session);
}

/// Reads with the concern `majority` wait at the primary itself.
void Majority(Service& near, Service&) {
  const antipode::ScopeGuard request;
  Insert(near, R"({"name": "majority"})", R"({"writeConcern": {"w": 1}})");
  BarrierAtRead(0.2);
  Check(Find(near, R"({"name": "majority"})", R"({"readConcern": {"level": "local"}})") == 1, "the primary has it");
  Throws<antipode::BarrierTimeout>("a majority has not", [&] {
    Find(near, R"({"name": "majority"})", R"({"readConcern": {"level": "majority"}})");
  });
}

/// A pool that goes to the whole set and reads at a secondary.
void Pooled(Service& near, Service&) {
  const std::string uri = "mongodb://" + near.address + "/?replicaSet=" + kSet + "&readPreference=secondary";
  const auto shim = Opened(uri, antipode::ReadsFrom::kReplica);
  mongoc_uri_t* parsed = mongoc_uri_new(uri.c_str());
  mongoc_client_pool_t* pool = mongoc_client_pool_new(parsed);
  antipode::mongodb::Client client(shim, pool);
  mongoc_client_t* native = mongoc_client_pool_pop(pool);
  Throws<antipode::ConfigurationError>("a client of a pool", [&] { antipode::mongodb::Client(shim, native); });
  {
    const antipode::ScopeGuard request;
    mongoc_collection_t* notes = mongoc_client_get_collection(native, "app", "notes");
    const Document given(R"({"name": "pooled"})");
    const Document one(R"({"writeConcern": {"w": 1}})");
    Check(client.Call([&] { return mongoc_collection_insert_one(notes, given.of, one.of, nullptr, nullptr); }),
          "it is");
    Holds(1);
    BarrierAtRead();
    Check(client.Call([&] {
      return mongoc_collection_count_documents(notes, given.of, nullptr, nullptr, nullptr, nullptr);
    }) == 1,
          "the secondary shows it");
    mongoc_collection_destroy(notes);
  }
  mongoc_client_pool_push(pool, native);
  mongoc_client_pool_destroy(pool);
  mongoc_uri_destroy(parsed);
  shim->Close();
}

/// A primary that was elected again meanwhile is asked, where a reply has no term.
void Elected(Service& near, Service&) {
  const antipode::ScopeGuard request;
  for (int n = 0; n < 2; ++n) {
    Check(FindAndModify(near, R"({"_id": 0})", R"({"writeConcern": {"w": 1}})"), "it is done");
    std::puts("written");
    std::fflush(stdout);
    std::getchar();
  }
  Check(Marks().empty(), "marks: " + Marks());
  antipode::BarrierOptions options;
  options.timeout = std::chrono::seconds(20);
  antipode::Barrier(options);
  for (const antipode::WriteId& each : antipode::Current().writes()) std::puts(each.key.c_str());
}

/// What goes past the calls is marked.
void Unseen(Service& near, Service&) {
  const antipode::ScopeGuard request;
  Check(mongoc_collection_insert_one(near.notes, Document(R"({"u": 1})").of, nullptr, nullptr, nullptr), "it inserts");
  Holds(0, "unsampled");
}

/// A pool outlives its client: what is written is marked, and nothing that is gone is called.
void Gone(Service& near, Service&) {
  mongoc_uri_t* parsed = mongoc_uri_new(near.uri.c_str());
  mongoc_client_pool_t* pool = mongoc_client_pool_new(parsed);
  { const antipode::mongodb::Client client(near.shim, pool); }
  mongoc_client_t* native = mongoc_client_pool_pop(pool);
  mongoc_collection_t* notes = mongoc_client_get_collection(native, "app", "notes");
  {
    const antipode::ScopeGuard request;
    const Document given(R"({"name": "gone"})");
    Check(mongoc_collection_count_documents(notes, given.of, nullptr, nullptr, nullptr, nullptr) == 0, "it counts");
    Holds(0);
    Check(mongoc_collection_insert_one(notes, given.of, nullptr, nullptr, nullptr), "it inserts");
    Holds(0, "unsampled");
  }
  mongoc_collection_destroy(notes);
  mongoc_client_pool_push(pool, native);
  mongoc_client_pool_destroy(pool);
  mongoc_uri_destroy(parsed);
}

/// A child process waits and reads over connections of its own, and its parent goes on.
void Forked(Service& near, Service& far) {
  Check(antipode::checks::ForksWell(*near.shim, *far.shim), "both processes read what they wrote");
}

}  // namespace

int main(int, char** arguments) {
  const std::map<std::string, std::function<void(Service&, Service&)>> checks{{"writes", Writes},
                                                                              {"nothing", Nothing},
                                                                              {"bulk", Bulk},
                                                                              {"repeated", Repeated},
                                                                              {"doubtful", Doubtful},
                                                                              {"held", Held},
                                                                              {"late", Late},
                                                                              {"transactions", Transactions},
                                                                              {"snapshots", Snapshots},
                                                                              {"pooled", Pooled},
                                                                              {"majority", Majority},
                                                                              {"lost_commit", LostCommit},
                                                                              {"unseen", Unseen},
                                                                              {"elected", Elected},
                                                                              {"uncommitted", Uncommitted},
                                                                              {"gone", Gone},
                                                                              {"forked", Forked}};
  mongoc_init();
  Service near(arguments[1], antipode::ReadsFrom::kPrimary);
  Service far(arguments[2], antipode::ReadsFrom::kReplica);
  checks.at(arguments[3])(near, far);
}
