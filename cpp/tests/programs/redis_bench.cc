// Sessions of hiredis.
#include <hiredis/hiredis.h>

#include <optional>

#include "antipode/redis_client.h"
#include "bench.h"
#include "client_checks.h"

namespace antipode::programs {
namespace {

using redis::OwnedReply;

constexpr const char* kWrites = "redis.call('SET', KEYS[1], ARGV[1]) return 1";
constexpr const char* kFails = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('NO_SUCH')";
constexpr const char* kReads = "return redis.call('GET', KEYS[1])";

/// A connection that nothing instruments.
struct Plain {
  explicit Plain(const checks::Server& server) : context(redisConnect(server.host.c_str(), server.port)) {
    if (context == nullptr || context->err != 0) throw std::logic_error("no server");
  }
  ~Plain() { redisFree(context); }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;

  OwnedReply Ask(const std::vector<std::string>& words) const {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const std::string& each : words) {
      texts.push_back(each.data());
      sizes.push_back(each.size());
    }
    return OwnedReply(static_cast<redisReply*>(
        redisCommandArgv(context, static_cast<int>(words.size()), texts.data(), sizes.data())));
  }

  redisContext* context;
};

std::string Text(const redisReply* reply) {
  if (reply == nullptr) return "lost";
  std::string text;
  for (std::size_t nth = 0; nth < reply->elements; ++nth) text += Text(reply->element[nth]) + ",";
  if (reply->type == REDIS_REPLY_INTEGER) return std::to_string(reply->integer);
  return reply->str == nullptr ? text : std::string(reply->str, reply->len);
}

/// The application's connection, instrumented.
struct Connection {
  Connection(const std::shared_ptr<redis::Shim>& shim, const checks::Server& server)
      : plain(server), client(shim, plain.context) {}
  Plain plain;
  redis::Client client;
};

std::shared_ptr<redis::Shim> Opened(const checks::Server& server, ReadsFrom reads_from) {
  redis::Options options;
  options.reads_from = reads_from;
  return redis::Shim::Open(kDatastore, server.host, server.port, options);
}

class RedisBench final : public Bench {
 public:
  explicit RedisBench(const std::vector<std::string>& words)
      : near_(words.at(0).c_str()),
        far_(words.at(1).c_str()),
        primary_(Opened(near_, ReadsFrom::kPrimary)),
        replica_(Opened(far_, ReadsFrom::kReplica)),
        at_primary_(near_),
        at_replica_(far_) {
    AddCommands();
    Add("pipeline", kOften, [this](Random& choose) { Pipeline(choose); });
    Add("transaction", kOften, [this](Random& choose) { Transaction(choose); });
    Add("watched", 4, [this](Random& choose) { Watched(choose); });
    Add("by the shim", kOften, [this](Random&) { WriteByShim(Number()); });
    Add("deletes by the shim", 2, [this](Random&) { primary_->Delete("kept"); });
    Add("read at the replica", kOften, [this](Random& choose) { ReadAtReplica(choose); });
    Add("read by the shim at the replica", 4, [this](Random& choose) { ReadByShim(choose); });
    Add("throws in a pipeline", 2, [this](Random&) { Throws(); });
    Add("ended by the server", 1, [this](Random&) { End(); });
  }
  ~RedisBench() override {
    primary_->Close();
    replica_->Close();
  }

  void Open(Random&) override {
    session_.emplace(primary_, near_);
    reader_.emplace(replica_, far_);
  }
  void Close() override {
    session_.reset();
    reader_.reset();
  }
  void Settle() override {
    if (session_->plain.context->err != 0) session_.emplace(primary_, near_);
  }
  std::string Committed() override { return Digest(at_primary_); }
  std::string Shown() override { return Digest(at_replica_); }
  void WriteByShim(const std::string& value) override { primary_->Write("kept", value); }

 private:
  static std::string Digest(const Plain& server) { return Text(server.Ask({"DEBUG", "DIGEST"}).get()); }

  void AddCommands() {
    using Words = std::vector<std::string>;
    const auto one = [this](const char* name, int weight, const Words& words) {
      Add(name, weight, [this, words](Random&) { Send(words); });
    };
    one("set", kOften, {"SET", "a", "#"});
    one("get", kOften, {"GET", "a"});
    one("increment", 1, {"INCRBY", "counter", "1"});
    one("delete", 1, {"DEL", "b"});
    one("delete nothing", 1, {"DEL", "no_such_key"});
    one("set if new", 1, {"SET", "b", "#", "NX"});
    one("push", 1, {"LPUSH", "a_list", "#"});
    one("pop", 1, {"RPOP", "a_list"});
    one("wrong type", 1, {"INCR", "a_list"});
    one("wrong number", 1, {"SET", "a"});
    one("no command", 1, {"NO_SUCH_COMMAND"});
    one("publish", 1, {"PUBLISH", "channel", "#"});
    one("script writes", 2, {"EVAL", kWrites, "1", "a", "#"});
    one("script reads", 1, {"EVAL", kReads, "1", "a"});
    one("script fails", 1, {"EVAL", kFails, "1", "a", "#"});
    one("stream", 1, {"XADD", "a_stream", "*", "f", "#"});
    one("many", 1, {"MSET", "a", "#", "b", "#"});
    one("ping", 1, {"PING"});
  }

  std::vector<std::string> Filled(std::vector<std::string> words) {
    for (std::string& each : words) {
      if (each == "#") each = Number();
    }
    return words;
  }
  void Send(const std::vector<std::string>& words) {
    Settle();
    const auto filled = Filled(words);
    session_->client.CommandArgv({filled.begin(), filled.end()});
  }
  void Append(const std::vector<std::string>& words) {
    const auto filled = Filled(words);
    Said("  " + filled.front());
    session_->client.AppendCommandArgv({filled.begin(), filled.end()});
  }
  void Fill(Random& choose, std::size_t count) {
    static const auto& inner = *new std::vector<std::vector<std::string>>{{"SET", "a", "#"},
                                                                          {"GET", "a"},
                                                                          {"LPUSH", "a_list", "#"},
                                                                          {"INCR", "a_list"},
                                                                          {"EVAL", kWrites, "1", "b", "#"}};
    for (; count > 0; --count) Append(inner[Below(choose, inner.size())]);
  }
  void Take(std::size_t count) {
    for (; count > 0; --count) session_->client.GetReply();
  }

  void Pipeline(Random& choose) {
    Settle();
    const std::size_t count = 1 + Below(choose, 4);
    Fill(choose, count);
    Take(count);
  }
  void Transaction(Random& choose) {
    Settle();
    const std::size_t count = 1 + Below(choose, 3);
    Append({"MULTI"});
    Fill(choose, count);
    Append({Chance(choose, 0.8) ? "EXEC" : "DISCARD"});
    Take(count + 2);
  }
  void Watched(Random& choose) {
    Send({"WATCH", "a"});
    if (Chance(choose, 0.3)) at_primary_.Ask({"SET", "a", Text(at_primary_.Ask({"GET", "a"}).get())});
    Transaction(choose);
  }

  void ReadAtReplica(Random& choose) {
    if (reader_->plain.context->err != 0) reader_.emplace(replica_, far_);
    BarrierAtRead(HeldS(choose));
    const OwnedReply reply = reader_->client.CommandArgv({"MGET", "a", "b"});
    if (!reply) return;
    const std::string found = Text(reply.get());
    const std::string there = Text(at_primary_.Ask({"MGET", "a", "b"}).get());
    if (found != there) throw Fault("early", "a held read shows " + found + " for " + there);
  }
  void ReadByShim(Random& choose) {
    BarrierAtRead(HeldS(choose));
    const auto found = replica_->Read("kept");
    if (found.value.value_or("") != Text(at_primary_.Ask({"GET", "kept"}).get())) {
      throw Fault("early", "a held read of the shim shows an older value");
    }
  }

  /// What is sent is known to nobody; what is not, is given up.
  void Throws() {
    Settle();
    try {
      Append({"SET", "a", "#"});
      Append({"SET", "b", "#"});
      session_->client.GetReply();
      throw Thrown();
    } catch (const Thrown&) {
      session_.emplace(primary_, near_);
      throw;
    }
  }
  void End() { at_primary_.Ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}); }

  checks::Server near_;
  checks::Server far_;
  std::shared_ptr<redis::Shim> primary_;
  std::shared_ptr<redis::Shim> replica_;
  Plain at_primary_;
  Plain at_replica_;
  std::optional<Connection> session_;
  std::optional<Connection> reader_;
};

}  // namespace

std::unique_ptr<Bench> MakeRedis(const std::vector<std::string>& words) { return std::make_unique<RedisBench>(words); }

}  // namespace antipode::programs
