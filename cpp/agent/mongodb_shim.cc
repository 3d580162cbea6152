// MongoDB in the agent: what its shim decides, and the shim itself.
#include <mongoc/mongoc.h>

#include <iostream>
#include <mutex>

#include "antipode/mongodb.h"
#include "antipode/mongodb_client.h"
#include "mongodb/beside.h"
#include "mongodb/commands.h"
#include "mongodb/position.h"
#include "mongodb/transaction.h"
#include "open_shim.h"

namespace antipode::agent {
namespace {

constexpr const char* kCollection = "posts";

std::uint64_t VersionOf(const Json& found) { return std::stoull(found.get<std::string>()); }

mongodb::OpTime OpTimeOf(const Json& found) { return {found.at("term"), VersionOf(found.at("version"))}; }

mongodb::Doc DocOf(const Json& found) {
  const std::string text = found.dump();
  bson_error_t error;
  bson_t* parsed =
      bson_new_from_json(reinterpret_cast<const std::uint8_t*>(text.data()), static_cast<ssize_t>(text.size()), &error);
  if (parsed == nullptr) throw std::invalid_argument(error.message);
  mongodb::Doc doc(*parsed);
  bson_destroy(parsed);
  return doc;
}

/// The entries of a vector; none where they may not be read.
class GivenOplog final : public mongodb::Oplog {
 public:
  explicit GivenOplog(const Json& server) : entries_(server.value("oplog", Json::array())) {}
  std::optional<mongodb::OpTime> FirstFrom(std::uint64_t version) override {
    if (!entries_.is_array()) return std::nullopt;
    for (const Json& each : entries_) {
      if (VersionOf(each.at("version")) >= version) return OpTimeOf(each);
    }
    return std::nullopt;
  }

 private:
  Json entries_;
};

/// What a server says of one write, after what `history` has of it.
Json StatusAt(const Json& server, const WriteId& write, mongodb::LogHistory& history) {
  mongodb::ServerState state;
  state.set_name = server.at("set");
  state.applied = OpTimeOf(server.at("applied"));
  state.committed = OpTimeOf(server.at("committed"));
  state.initiated_s = server.at("initiated_s");
  GivenOplog oplog(server);
  return NameOf(Judge(state, write, server.at("majority"), history, oplog).first);
}

Json LookAt(const Json& given) {
  Json statuses = Json::array();
  for (Json each : given.at("writes")) {
    each["datastore"] = "posts";
    mongodb::LogHistory history;
    const WriteId write = json::WriteOf(each);
    if (given.contains("before")) StatusAt(given.at("before"), write, history);
    statuses.push_back(StatusAt(given.at("server"), write, history));
  }
  return {{"statuses", statuses}};
}

Json PositionIn(const Json& given) {
  const Json& reply = given.at("reply");
  mongodb::Told told;
  if (reply.contains("opTime")) told.written = OpTimeOf(reply.at("opTime"));
  if (reply.contains("operationTime")) told.operation = VersionOf(reply.at("operationTime"));
  if (reply.contains("clusterTime")) {
    told.state = mongodb::ServerState{};
    told.state->applied = OpTimeOf(reply.at("applied"));
    told.state->committed = OpTimeOf(reply.at("committed"));
    told.state->primary = reply.at("primary");
    told.state->heard = VersionOf(reply.at("clusterTime"));
  }
  const auto named = given.at("of") == "write" ? mongodb::WritePosition : mongodb::ReadPosition;
  const auto found = named(told, "rs", given.at("majority"));
  if (!found) return {{"position", nullptr}};
  return {{"position", {{"key", found->first}, {"version", std::to_string(found->second)}}}};
}

Json FoundInField(const Json& given) {
  const mongodb::Doc document = DocOf(given);
  const auto beside = mongodb::At(document.bson(), "ap");
  const auto value = mongodb::At(document.bson(), "value");
  const auto [lineage, match] =
      value ? mongodb::FoundBeside(mongodb::HolderOf(value), beside, "posts") : mongodb::FoundIn(beside, "posts");
  return {{"lineage", json::Of(lineage)}, {"match", NameOf(match)}};
}

class MongodbShim final : public TableShim<mongodb::Shim> {
 public:
  MongodbShim(std::shared_ptr<mongodb::Shim> shim, std::string uri, std::string database)
      : TableShim(std::move(shim)), uri_(std::move(uri)), database_(std::move(database)) {}

  void RollBack(const std::string& key, const std::string& value, const Promise& fulfils) override {
    const std::unique_ptr<mongoc_client_t, void (*)(mongoc_client_t*)> client(mongoc_client_new(uri_.c_str()),
                                                                              mongoc_client_destroy);
    bson_error_t error;
    const std::unique_ptr<mongoc_client_session_t, void (*)(mongoc_client_session_t*)> session(
        mongoc_client_start_session(client.get(), nullptr, &error), mongoc_client_session_destroy);
    if (!session || !mongoc_client_session_start_transaction(session.get(), nullptr, &error)) {
      throw mongodb::Error(error.message);
    }
    shim().Fulfil(session.get(), fulfils);
    mongodb::Transaction transaction(session.get());
    const auto update =
        mongodb::Doc().Add("q", mongodb::Only("_id", key)).Add("u", mongodb::Only("value", value)).Add("upsert", true);
    transaction.Ask(database_, mongodb::Doc().Add("update", "posts").Add("updates", mongodb::List(update)));
    if (!mongoc_client_session_abort_transaction(session.get(), &error)) throw mongodb::Error(error.message);
  }

 private:
  std::string uri_;
  std::string database_;
};

/// What a request describes: a URI, and a shim of it.
std::string UriOf(const Json& given) {
  // The client logs to standard output, where the agent's answers go.
  static std::once_flag logged;
  std::call_once(logged, [] {
    const auto log = [](mongoc_log_level_t, const char* domain, const char* message, void*) {
      std::cerr << domain << ": " << message << "\n";
    };
    mongoc_log_set_handler(log, nullptr);
  });
  const Json& server = given.at("server");
  std::string uri = "mongodb://" + server.at("host").get<std::string>() + ":" +
                    std::to_string(server.at("port").get<int>()) + "/?directConnection=true";
  if (given.contains("timeout_s")) {
    uri += "&socketTimeoutMS=" + std::to_string(static_cast<int>(given.at("timeout_s").get<double>() * 1'000));
  }
  return uri;
}

std::string DatabaseOf(const Json& given) { return given.at("server").at("database"); }

std::shared_ptr<mongodb::Shim> Opened(const Json& given) {
  mongodb::Options options;
  options.database = DatabaseOf(given);
  options.collection = kCollection;
  if (given.value("reads_from", "primary") == "replica") options.reads_from = ReadsFrom::kReplica;
  options.merge_reads = given.value("on_read", "merge") == "merge";
  return mongodb::Shim::Open(given.at("datastore"), UriOf(given), options);
}

/// Plain calls of an instrumented client.
class MongodbClient final : public OpenShim {
 public:
  explicit MongodbClient(const Json& given)
      : shim_(Opened(given)),
        native_(mongoc_client_new(UriOf(given).c_str()), mongoc_client_destroy),
        posts_(mongoc_client_get_collection(native_.get(), DatabaseOf(given).c_str(), kCollection),
               mongoc_collection_destroy),
        client_(shim_, native_.get()) {
    mongoc_client_set_error_api(native_.get(), MONGOC_ERROR_API_VERSION_2);
  }
  ~MongodbClient() override { shim_->Close(); }
  Store& store() override { return *shim_; }

  std::optional<Lineage> Write(const std::string& key, const std::string& value, const std::optional<Lineage>&,
                               const std::optional<Promise>&) override {
    const mongodb::Doc id = mongodb::Only("_id", key);
    const mongodb::Doc document = mongodb::Only("value", value);
    const mongodb::Doc options = mongodb::Only("upsert", true);
    Do([&](bson_error_t* error) {
      return mongoc_collection_replace_one(posts_.get(), &id.bson(), &document.bson(), &options.bson(), nullptr, error);
    });
    return std::nullopt;
  }
  std::optional<Lineage> Delete(const std::string& key, const std::optional<Lineage>&) override {
    const mongodb::Doc id = mongodb::Only("_id", key);
    Do([&](bson_error_t* error) {
      return mongoc_collection_delete_one(posts_.get(), &id.bson(), nullptr, nullptr, error);
    });
    return std::nullopt;
  }
  Found Read(const std::string& key) override {
    const mongodb::Doc id = mongodb::Only("_id", key);
    const std::unique_ptr<mongoc_cursor_t, void (*)(mongoc_cursor_t*)> cursor(
        mongoc_collection_find_with_opts(posts_.get(), &id.bson(), nullptr, nullptr), mongoc_cursor_destroy);
    const bson_t* found = nullptr;
    if (client_.Next(cursor.get(), &found)) return {mongodb::TextAt(*found, "value"), std::nullopt};
    bson_error_t error;
    if (mongoc_cursor_error(cursor.get(), &error)) throw mongodb::Error(error.message, static_cast<int>(error.code));
    return {std::nullopt, std::nullopt};
  }
  void RollBack(const std::string&, const std::string&, const Promise&) override {
    throw Unsupported("a client fulfils no promises");
  }

 private:
  template <typename Function>
  void Do(Function function) {
    bson_error_t error;
    const bool done = client_.Call([&] { return function(&error); });
    if (!done) throw mongodb::Error(error.message, static_cast<int>(error.code));
  }

  std::shared_ptr<mongodb::Shim> shim_;
  std::unique_ptr<mongoc_client_t, void (*)(mongoc_client_t*)> native_;
  std::unique_ptr<mongoc_collection_t, void (*)(mongoc_collection_t*)> posts_;
  mongodb::Client client_;
};

}  // namespace

std::unique_ptr<OpenShim> OpenMongodb(const Json& given) {
  return std::make_unique<MongodbShim>(Opened(given), UriOf(given), DatabaseOf(given));
}

std::unique_ptr<OpenShim> OpenMongodbClient(const Json& given) { return std::make_unique<MongodbClient>(given); }

Json DecideMongodb(const std::string& kind, const Json& given) {
  if (kind == "look_at") return LookAt(given);
  if (kind == "position") return PositionIn(given);
  if (kind == "found") return FoundInField(given);
  if (kind == "command") return {{"does", NameOf(mongodb::EffectOf(DocOf(given.at("command")).bson()))}};
  throw Unsupported("C++ decides nothing of MongoDB that is called '" + kind + "'");
}

}  // namespace antipode::agent
