#include "mongodb/link.h"

#include <algorithm>
#include <set>

#include "antipode/errors.h"

namespace antipode::mongodb {
namespace {

constexpr int kUnauthorized = 13;
/// Shutdown, a change of state, an interruption by an administrator, a limit of time: maybe in the middle of a write.
const std::set<int>& kInterrupted = *new std::set<int>{24, 50, 64, 89, 91, 189, 262, 10058, 11600, 11601, 11602, 46841};
/// As these, or before anything began: no primary, not one any more, recovering, starting.
const std::set<int>& kPassing =
    *new std::set<int>{6, 7, 89, 91, 189, 9001, 10058, 10107, 11600, 11602, 13435, 13436, 50, 262};

/// The library of the client is initialised once in a process, and is never given up: applications may use it, too.
void Begin() {
  static const bool begun = [] {
    mongoc_init();
    return true;
  }();
  static_cast<void>(begun);
}

Uri Parsed(const std::string& text) {
  Begin();
  bson_error_t error;
  Uri uri(mongoc_uri_new_with_error(text.c_str(), &error));
  if (!uri) throw ConfigurationError(std::string("no URI of MongoDB: ") + error.message);
  return uri;
}

/// The same for a client that gives up a server after so many seconds.
Uri Limited(Uri uri, double timeout_s) {
  const int limit_ms = std::max(1, static_cast<int>(timeout_s * 1'000));
  for (const char* option :
       {MONGOC_URI_SOCKETTIMEOUTMS, MONGOC_URI_CONNECTTIMEOUTMS, MONGOC_URI_SERVERSELECTIONTIMEOUTMS}) {
    mongoc_uri_set_option_as_int32(uri.get(), option, limit_ms);
  }
  return uri;
}

}  // namespace

Error::~Error() = default;

bool Interrupted(int code) { return kInterrupted.count(code) > 0; }

bool Passes(const Error& error) {
  return dynamic_cast<const NoAnswer*>(&error) != nullptr || kPassing.count(error.code()) > 0;
}

Target::Target(const std::string& text) : uri(Parsed(text)) {
  direct = mongoc_uri_get_option_as_bool(uri.get(), MONGOC_URI_DIRECTCONNECTION, false);
  const mongoc_write_concern_t* writes = mongoc_uri_get_write_concern(uri.get());
  majority_writes = mongoc_write_concern_get_wmajority(writes);
  if (!mongoc_write_concern_is_acknowledged(writes)) {
    throw ConfigurationError("writes that are not acknowledged have no positions: do not set w=0");
  }
  const char* level = mongoc_read_concern_get_level(mongoc_uri_get_read_concern(uri.get()));
  const std::string named = level == nullptr ? "local" : level;
  majority_reads = named == "majority";
  if (!majority_reads && named != "local") {
    throw ConfigurationError("the read concern '" + named + "' cannot wait for a position: use 'local' or 'majority'");
  }
}

Uri Target::Within(double timeout_s) const { return Limited(Uri(mongoc_uri_copy(uri.get())), timeout_s); }

Uri Target::Of(const std::string& address, double timeout_s) const {
  const std::string whole = mongoc_uri_get_string(uri.get());
  const std::size_t begin = whole.find("://") + 3;
  const std::size_t end = std::min(whole.find('/', begin), whole.size());
  const std::size_t user = whole.rfind('@', end);
  const std::size_t hosts = user == std::string::npos || user < begin ? begin : user + 1;
  Uri made = Parsed("mongodb://" + whole.substr(begin, hosts - begin) + address + whole.substr(end));
  mongoc_uri_set_option_as_bool(made.get(), MONGOC_URI_DIRECTCONNECTION, true);
  mongoc_uri_set_option_as_bool(made.get(), MONGOC_URI_TLS, mongoc_uri_get_tls(uri.get()));
  return Limited(std::move(made), timeout_s);
}

Doc Link::Ask(const std::string& database, const Doc& command, bool anywhere) {
  const mongoc_read_prefs_t* preference = anywhere ? mongoc_client_get_read_prefs(client_) : nullptr;
  bson_error_t error;
  bson_t reply;
  const bool done =
      mongoc_client_command_simple(client_, database.c_str(), &command.bson(), preference, &reply, &error);
  Doc answer(reply);
  bson_destroy(&reply);
  // A write whose concern was not met is done: what its answer says counts.
  if (done || TrueAt(answer.bson(), "ok")) return answer;
  if (At(answer.bson(), "ok")) throw Error(error.message, static_cast<int>(error.code));
  throw NoAnswer(error.message, error.domain != MONGOC_ERROR_SERVER_SELECTION);
}

ServerState Link::Hello(bool anywhere) {
  Doc command;
  command.Add("hello", 1);
  const Doc reply = Ask("admin", AskingWhere(command), anywhere);
  const auto state = StateOfHello(reply.bson());
  if (!state) throw Unreachable("the server is neither primary nor secondary now: it recovers, or is an arbiter");
  return *state;
}

Pool::Pool(const Uri& uri) : pool_(mongoc_client_pool_new(uri.get())) {
  if (pool_ == nullptr) throw ConfigurationError("no client can be made of this URI of MongoDB");
  mongoc_client_pool_set_error_api(pool_, MONGOC_ERROR_API_VERSION_2);
}

std::optional<OpTime> AskedOplog::FirstFrom(std::uint64_t version) {
  Doc command;
  command.Add("find", "oplog.rs")
      .Add("filter", Only("ts", Only("$gte", Stamp{version})))
      .Add("sort", Only("$natural", 1))
      .Add("projection", Doc().Add("ts", 1).Add("t", 1))
      .Add("limit", 1)
      .Add("singleBatch", true);
  try {
    const Doc reply = client_.Ask("local", command, true);
    const auto found = StampAt(reply.bson(), "cursor.firstBatch.0.ts");
    if (!found) return std::nullopt;
    return OpTime{IntAt(reply.bson(), "cursor.firstBatch.0.t").value_or(-1), *found};
  } catch (const Error& error) {
    if (error.code() == kUnauthorized) return std::nullopt;
    throw Unreachable(error.what());
  }
}

Observation Shown(const ServerState& state, const std::set<WriteId>& writes, bool majority, LogHistory& history,
                  Link& client) {
  AskedOplog oplog(client);
  Observation shown;
  shown.server = state.incarnation;
  for (const WriteId& each : writes) {
    const auto [status, cause] = Judge(state, each, majority, history, oplog);
    shown.statuses[each] = status;
    if (!cause.empty()) shown.causes[each] = cause;
  }
  return shown;
}

}  // namespace antipode::mongodb
