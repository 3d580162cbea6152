// Redis in the agent: what its shim decides, and the shim itself.
#include <hiredis/hiredis.h>

#include <algorithm>

#include "antipode/redis.h"
#include "antipode/redis_client.h"
#include "open_shim.h"
#include "redis/batch.h"
#include "redis/companion.h"
#include "redis/position.h"
#include "redis/tokens.h"

namespace antipode::agent {
namespace {

std::string LinesOf(const Json& lines) {
  std::string text;
  for (const Json& line : lines) text += line.get<std::string>() + "\r\n";
  return text;
}

Json LookAt(const Json& given) {
  const Json& server = given.at("server");
  std::vector<WriteId> writes;
  for (Json each : given.at("writes")) {
    each["datastore"] = "posts";
    writes.push_back(json::WriteOf(each));
  }
  const auto all = [&](std::string_view status) {
    return Json{{"statuses", std::vector<std::string>(writes.size(), std::string(status))}};
  };
  if (server.contains("error")) {
    return all(redis::IsPassing(server.at("error").get<std::string>()) ? "unreachable" : "undecidable");
  }
  const std::set<WriteId> asked(writes.begin(), writes.end());
  redis::LogHistory history;
  const auto first = redis::StateOf(LinesOf(server.at("info")));
  if (!first) return all("undecidable");
  Observation shown = redis::Shown(*first, "", asked, history, {});
  const auto logs = redis::UnknownLogs(shown);
  if (!logs.empty()) {
    const auto then = redis::StateOf(LinesOf(server.contains("then") ? server.at("then") : server.at("info")));
    if (!then) return all("undecidable");
    const Json kept = server.value("history", Json::object());
    for (const std::string& log : logs) {
      if (kept.contains(log)) history.Learn(then->log, log, kept.at(log).get<std::string>());
    }
    shown = redis::Shown(*then, "", asked, history, {});
  }
  Json statuses = Json::array();
  for (const WriteId& each : writes) statuses.push_back(NameOf(shown.Of(each).first));
  return {{"statuses", statuses}};
}

redis::Text TextOf(const Json& found) { return found.is_null() ? redis::Text() : found.get<std::string>(); }

Json FoundBeside(const Json& given) {
  const std::string shown = given.at("shown");
  const auto extent = shown == "nothing" ? redis::Extent::kNothing
                      : shown == "part"  ? redis::Extent::kPart
                                         : redis::Extent::kWhole;
  const auto [lineage, match] =
      redis::Unpacked(TextOf(given.value("value", Json())), extent, TextOf(given.value("companion", Json())), "posts");
  return {{"lineage", json::Of(lineage)}, {"match", NameOf(match)}};
}

std::optional<redis::ServerState> StateIn(const Json& given, const char* name) {
  return given.contains(name) ? redis::StateOf(LinesOf(given.at(name))) : std::nullopt;
}

Json Token(const Json& given) {
  const std::string after = given.at("after");
  const auto state = StateIn(given, "info");
  const Lineage token = after == "write"  ? redis::OfWrite("posts", state)
                        : after == "read" ? redis::OfRead("posts", state)
                                          : redis::OfUnknown("posts", StateIn(given, "before"), state);
  Json notes = Json::object();
  if (state && after != "read") {
    for (const auto& [log, end] : redis::NotesOf(*state)) notes[log] = std::to_string(end);
  }
  return {{"lineage", json::Of(token)}, {"notes", notes}};
}

Json DoneAtOnce(const Json& given) {
  std::vector<redis::Does> all;
  for (const Json& words : given.at("commands")) all.push_back(redis::DoesOf(words.get<std::vector<std::string>>()));
  return {{"reads", std::any_of(all.begin(), all.end(), redis::Reads)},
          {"may_write", std::any_of(all.begin(), all.end(), redis::MayWrite)},
          {"repeatable", std::all_of(all.begin(), all.end(), redis::Repeatable)}};
}

class RedisShim final : public TableShim<redis::Shim> {
 public:
  using TableShim::TableShim;

  void RollBack(const std::string&, const std::string&, const Promise&) override {
    throw Unsupported("Table 2 of Redis rolls nothing back");
  }
};

std::shared_ptr<redis::Shim> Opened(const Json& given) {
  const Json& server = given.at("server");
  redis::Options options;
  if (given.value("reads_from", "primary") == "replica") options.reads_from = ReadsFrom::kReplica;
  options.merge_reads = given.value("on_read", "merge") == "merge";
  const Json timeout_s = given.value("timeout_s", Json());
  if (!timeout_s.is_null()) options.timeout = std::chrono::duration<double>(timeout_s.get<double>());
  return redis::Shim::Open(given.at("datastore"), server.at("host"), server.at("port").get<std::uint16_t>(), options);
}

/// Plain commands of an instrumented connection.
class RedisClient final : public OpenShim {
 public:
  explicit RedisClient(const Json& given)
      : shim_(Opened(given)),
        context_(redisConnect(given.at("server").at("host").get<std::string>().c_str(),
                              given.at("server").at("port").get<int>())),
        client_(shim_, context_.get()) {}
  ~RedisClient() override { shim_->Close(); }
  Store& store() override { return *shim_; }

  std::optional<Lineage> Write(const std::string& key, const std::string& value, const std::optional<Lineage>&,
                               const std::optional<Promise>&) override {
    Answered({"SET", key, value});
    return std::nullopt;
  }
  std::optional<Lineage> Delete(const std::string& key, const std::optional<Lineage>&) override {
    Answered({"DEL", key});
    return std::nullopt;
  }
  Found Read(const std::string& key) override {
    const redis::OwnedReply reply = Answered({"GET", key});
    if (reply->type == REDIS_REPLY_NIL) return {};
    return {std::string(reply->str, reply->len), std::nullopt};
  }
  void RollBack(const std::string&, const std::string&, const Promise&) override {
    throw Unsupported("a client fulfils no promises");
  }

 private:
  struct Free {
    void operator()(redisContext* context) const { redisFree(context); }
  };

  redis::OwnedReply Answered(const std::vector<std::string_view>& words) {
    redis::OwnedReply reply = client_.CommandArgv(words);
    if (!reply) throw redis::Error(context_->errstr);
    if (reply->type == REDIS_REPLY_ERROR) throw redis::Error(std::string(reply->str, reply->len));
    return reply;
  }

  std::shared_ptr<redis::Shim> shim_;
  std::unique_ptr<redisContext, Free> context_;
  redis::Client client_;
};

}  // namespace

std::unique_ptr<OpenShim> OpenRedis(const Json& given) { return std::make_unique<RedisShim>(Opened(given)); }
std::unique_ptr<OpenShim> OpenRedisClient(const Json& given) { return std::make_unique<RedisClient>(given); }

Json DecideRedis(const std::string& kind, const Json& given) {
  if (kind == "look_at") return LookAt(given);
  if (kind == "found") return FoundBeside(given);
  if (kind == "token") return Token(given);
  if (kind == "batch") return DoneAtOnce(given);
  if (kind == "command") {
    return {{"does", redis::NameOf(redis::DoesOf(given.at("command").get<std::vector<std::string>>()))}};
  }
  if (kind == "stored") {
    const redis::Text value = TextOf(given.value("value", Json()));
    return {{"companion", redis::Packed(value, given.at("text").get<std::string>())}};
  }
  throw Unsupported("C++ decides nothing of Redis that is called '" + kind + "'");
}

}  // namespace antipode::agent
