// Sessions of libmongoc: clients, pools, sessions and transactions.
#include <mongoc/mongoc.h>

#include <optional>

#include "antipode/mongodb_client.h"
#include "bench.h"

namespace antipode::programs {
namespace {

/// A document as JSON has it.
struct Document {
  explicit Document(const std::string& json)
      : of(bson_new_from_json(reinterpret_cast<const std::uint8_t*>(json.data()), -1, nullptr)) {
    if (of == nullptr) throw std::logic_error(json);
  }
  ~Document() { bson_destroy(of); }
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  bson_t* of;
};

struct DestroyClient {
  void operator()(mongoc_client_t* client) const { mongoc_client_destroy(client); }
};
struct DestroyCollection {
  void operator()(mongoc_collection_t* collection) const { mongoc_collection_destroy(collection); }
};
struct DestroySession {
  void operator()(mongoc_client_session_t* session) const { mongoc_client_session_destroy(session); }
};
using Collection = std::unique_ptr<mongoc_collection_t, DestroyCollection>;

Collection In(mongoc_client_t* client, const char* name) {
  return Collection(mongoc_client_get_collection(client, "app", name));
}

std::string UriOf(const std::string& server) { return "mongodb://" + server + "/?directConnection=true&w=1"; }

std::shared_ptr<mongodb::Shim> Opened(const std::string& server, ReadsFrom reads_from) {
  mongodb::Options options;
  options.database = "app";
  options.collection = "posts";
  options.reads_from = reads_from;
  return mongodb::Shim::Open(kDatastore, UriOf(server), options);
}

/// The application's client, instrumented.
struct Service {
  Service(const std::shared_ptr<mongodb::Shim>& shim, const std::string& server, bool retries)
      : native(mongoc_client_new((UriOf(server) + (retries ? "" : "&retryWrites=false")).c_str())),
        client(std::make_unique<mongodb::Client>(shim, native.get())),
        kept(In(native.get(), "kept")) {}
  ~Service() { client.reset(); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  std::unique_ptr<mongoc_client_t, DestroyClient> native;
  std::unique_ptr<mongodb::Client> client;
  Collection kept;
};

class MongoDbBench final : public Bench {
 public:
  explicit MongoDbBench(const std::vector<std::string>& words)
      : near_(words.at(0)),
        far_(words.at(1)),
        primary_(Opened(near_, ReadsFrom::kPrimary)),
        replica_(Opened(far_, ReadsFrom::kReplica)),
        at_primary_(mongoc_client_new(UriOf(near_).c_str())),
        at_replica_(mongoc_client_new(UriOf(far_).c_str())) {
    Add("insert", kOften, [this](Random&) { Insert("#"); });
    Add("insert again", 1, [this](Random&) { Insert("0"); });
    Add("update", kOften, [this](Random&) { Update("{}", "#"); });
    Add("update nothing", 1, [this](Random&) { Update(R"({"_id": "none"})", "#"); });
    Add("delete", 2, [this](Random&) { Delete(R"({"n": {"$exists": true}})"); });
    Add("find and modify", 3, [this](Random&) { FindAndModify(); });
    Add("bulk", 3, [this](Random& choose) { Bulk(choose); });
    Add("find", kOften, [this](Random&) { Find(*session_, "{}"); });
    Add("begin", 4, [this](Random&) { Begin(); });
    Add("commit", 4, [this](Random&) { Commit(); });
    Add("abort", 2, [this](Random&) { Abort(); });
    Add("by the shim", kOften, [this](Random&) { WriteByShim(Number()); });
    Add("deletes by the shim", 2, [this](Random&) { primary_->Delete("kept"); });
    Add("read at the replica", kOften, [this](Random& choose) { ReadAtReplica(choose); });
    Add("throws within a call", 3, [this](Random&) { Throws(); });
    Add("a pool outlives its client", 1, [this](Random&) { Pool(); });
  }
  ~MongoDbBench() override {
    primary_->Close();
    replica_->Close();
  }

  void Open(Random& choose) override {
    session_.emplace(primary_, near_, Chance(choose, 0.5));
    reader_.emplace(replica_, far_, true);
  }
  void Close() override {
    transaction_.reset();
    session_.reset();
    reader_.reset();
  }
  void Settle() override { Abort(); }
  std::string Committed() override { return Documents(at_primary_.get()); }
  std::string Shown() override { return Documents(at_replica_.get()); }
  void WriteByShim(const std::string& value) override { primary_->Write("kept", value); }

 private:
  static std::string Documents(mongoc_client_t* client) {
    std::string text;
    const Document all("{}");
    const Document sorted(R"({"sort": {"_id": 1}})");
    for (const char* name : {"kept", "posts"}) {
      const Collection of = In(client, name);
      mongoc_cursor_t* cursor = mongoc_collection_find_with_opts(of.get(), all.of, sorted.of, nullptr);
      const bson_t* found = nullptr;
      while (mongoc_cursor_next(cursor, &found)) text += Json(found);
      mongoc_cursor_destroy(cursor);
    }
    return text;
  }
  static std::string Json(const bson_t* document) {
    char* json = bson_as_canonical_extended_json(document, nullptr);
    std::string text(json);
    bson_free(json);
    return text;
  }

  std::string Filled(std::string json) {
    for (std::size_t at = 0; (at = json.find('#')) != std::string::npos;) json.replace(at, 1, Number());
    Said("  " + json + (transaction_ ? " in a transaction" : ""));
    return json;
  }
  /// Options of a call: those of the transaction that is open.
  Document Options() const {
    bson_t options = BSON_INITIALIZER;
    if (transaction_) mongoc_client_session_append(transaction_.get(), &options, nullptr);
    const std::string json = Json(&options);
    bson_destroy(&options);
    return Document(json);
  }
  template <typename Function>
  void Call(Function&& function) {
    const Document options = Options();
    session_->client->Call([&] { return function(options.of); });
  }

  void Insert(const std::string& id) {
    const Document given(Filled(R"({"_id": )" + id + R"(, "n": 1})"));
    Call([&](const bson_t* options) {
      return mongoc_collection_insert_one(session_->kept.get(), given.of, options, nullptr, nullptr);
    });
  }
  void Update(const std::string& filter, const std::string& value) {
    const Document selector(filter);
    const Document change(Filled(R"({"$set": {"n": )" + value + "}}"));
    Call([&](const bson_t* options) {
      return mongoc_collection_update_one(session_->kept.get(), selector.of, change.of, options, nullptr, nullptr);
    });
  }
  void Delete(const std::string& filter) {
    const Document selector(filter);
    Call([&](const bson_t* options) {
      return mongoc_collection_delete_one(session_->kept.get(), selector.of, options, nullptr, nullptr);
    });
  }
  void FindAndModify() {
    const Document sought("{}");
    const Document change(R"({"$inc": {"n": 1}})");
    const Document more = Options();
    mongoc_find_and_modify_opts_t* options = mongoc_find_and_modify_opts_new();
    mongoc_find_and_modify_opts_set_update(options, change.of);
    mongoc_find_and_modify_opts_append(options, more.of);
    Call([&](const bson_t*) {
      bson_t reply;
      const bool done =
          mongoc_collection_find_and_modify_with_opts(session_->kept.get(), sought.of, options, &reply, nullptr);
      bson_destroy(&reply);
      return done;
    });
    mongoc_find_and_modify_opts_destroy(options);
  }
  /// Of several writes one fails, which ends those after it, or not.
  void Bulk(Random& choose) {
    const Document options(Chance(choose, 0.5) ? "{}" : R"({"ordered": false})");
    mongoc_bulk_operation_t* bulk = mongoc_collection_create_bulk_operation_with_opts(session_->kept.get(), options.of);
    if (transaction_) mongoc_bulk_operation_set_client_session(bulk, transaction_.get());
    for (const char* each : {R"({"_id": #})", R"({"_id": 0})", R"({"_id": #})"}) {
      if (Chance(choose, 0.8))
        mongoc_bulk_operation_insert_with_opts(bulk, Document(Filled(each)).of, nullptr, nullptr);
    }
    Call([&](const bson_t*) {
      bson_t reply;
      const auto done = mongoc_bulk_operation_execute(bulk, &reply, nullptr);
      bson_destroy(&reply);
      return done;
    });
    mongoc_bulk_operation_destroy(bulk);
  }
  std::string Find(Service& at, const std::string& filter) {
    const Document sought(filter);
    const Document sorted(R"({"sort": {"_id": 1}})");
    const std::unique_ptr<mongoc_cursor_t, void (*)(mongoc_cursor_t*)> cursor(
        mongoc_collection_find_with_opts(at.kept.get(), sought.of, sorted.of, nullptr), mongoc_cursor_destroy);
    std::string text;
    const bson_t* found = nullptr;
    while (at.client->Next(cursor.get(), &found)) text += Json(found);
    if (mongoc_cursor_error(cursor.get(), nullptr)) throw std::runtime_error("the cursor failed");
    return text;
  }

  void Begin() {
    if (transaction_) return;
    transaction_.reset(mongoc_client_start_session(session_->native.get(), nullptr, nullptr));
    mongoc_client_session_start_transaction(transaction_.get(), nullptr, nullptr);
  }
  void Commit() {
    if (!transaction_) return;
    session_->client->Call([&] {
      bson_t reply;
      const bool done = mongoc_client_session_commit_transaction(transaction_.get(), &reply, nullptr);
      bson_destroy(&reply);
      return done;
    });
    transaction_.reset();
  }
  void Abort() {
    if (!transaction_) return;
    session_->client->Call([&] { return mongoc_client_session_abort_transaction(transaction_.get(), nullptr); });
    transaction_.reset();
  }

  void ReadAtReplica(Random& choose) {
    BarrierAtRead(HeldS(choose));
    const std::string found = Find(*reader_, "{}");
    const Document all("{}");
    const Document sorted(R"({"sort": {"_id": 1}})");
    std::string there;
    const Collection kept = In(at_primary_.get(), "kept");
    mongoc_cursor_t* cursor = mongoc_collection_find_with_opts(kept.get(), all.of, sorted.of, nullptr);
    const bson_t* document = nullptr;
    while (mongoc_cursor_next(cursor, &document)) there += Json(document);
    mongoc_cursor_destroy(cursor);
    if (found != there) throw Fault("early", "a held read shows older documents");
  }

  void Throws() {
    const Document given(Filled(R"({"_id": #})"));
    session_->client->Call([&] {
      mongoc_collection_insert_one(session_->kept.get(), given.of, nullptr, nullptr, nullptr);
      throw Thrown();
    });
  }

  void Pool() {
    mongoc_uri_t* uri = mongoc_uri_new(UriOf(near_).c_str());
    mongoc_client_pool_t* pool = mongoc_client_pool_new(uri);
    auto client = std::make_unique<mongodb::Client>(primary_, pool);
    mongoc_client_t* native = mongoc_client_pool_pop(pool);
    const Document given(Filled(R"({"_id": #})"));
    {
      const Collection kept = In(native, "kept");
      client->Call([&] { return mongoc_collection_insert_one(kept.get(), given.of, nullptr, nullptr, nullptr); });
      client.reset();
      const Document more(Filled(R"({"_id": #})"));
      mongoc_collection_insert_one(kept.get(), more.of, nullptr, nullptr, nullptr);
    }
    mongoc_client_pool_push(pool, native);
    mongoc_client_pool_destroy(pool);
    mongoc_uri_destroy(uri);
  }

  std::string near_;
  std::string far_;
  std::shared_ptr<mongodb::Shim> primary_;
  std::shared_ptr<mongodb::Shim> replica_;
  std::unique_ptr<mongoc_client_t, DestroyClient> at_primary_;
  std::unique_ptr<mongoc_client_t, DestroyClient> at_replica_;
  std::optional<Service> session_;
  std::optional<Service> reader_;
  std::unique_ptr<mongoc_client_session_t, DestroySession> transaction_;
};

}  // namespace

std::unique_ptr<Bench> MakeMongoDb(const std::vector<std::string>& words) {
  static const bool begun = (mongoc_init(), true);
  static_cast<void>(begun);
  return std::make_unique<MongoDbBench>(words);
}

}  // namespace antipode::programs
