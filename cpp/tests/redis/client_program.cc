// Instrumented connections of hiredis to a primary and to a replica that lags: tests/integration/redis/test_hiredis.py.
#include <hiredis/hiredis.h>

#include <algorithm>

#include "antipode/redis_client.h"
#include "client_checks.h"
#include "forks.h"

namespace {

using namespace antipode::checks;
using antipode::redis::OwnedReply;

struct Region : Server {
  Region(const char* address, antipode::ReadsFrom reads_from) : Server(address) {
    antipode::redis::Options options;
    options.reads_from = reads_from;
    shim = antipode::redis::Shim::Open("posts", host, port, options);
  }
  ~Region() { shim->Close(); }

  std::shared_ptr<antipode::redis::Shim> shim;
};

struct Connection {
  explicit Connection(const Region& region)
      : shim(region.shim), context(redisConnect(region.host.c_str(), region.port)), client(shim, context) {}
  ~Connection() { redisFree(context); }

  std::shared_ptr<antipode::redis::Shim> shim;
  redisContext* context;
  antipode::redis::Client client;
};

std::string Text(const OwnedReply& reply) {
  if (!reply) return "lost";
  if (reply->type == REDIS_REPLY_INTEGER) return std::to_string(reply->integer);
  if (reply->type == REDIS_REPLY_ARRAY) return "array of " + std::to_string(reply->elements);
  return reply->type == REDIS_REPLY_NIL ? "nil" : std::string(reply->str, reply->len);
}

void Held(Connection& near, Connection& far) {
  const antipode::ScopeGuard request;
  Same(Text(near.client.Command("SET %s %b", "held", "new", std::size_t{3})), "OK");
  Holds(1);
  BarrierAtRead();
  Same(Text(far.client.Command("GET %s", "held")), "new");
  Same(Text(far.client.CommandArgv({"GET", "no-such"})), "nil");
  near.client.CommandArgv({"DEL", "held"});
  Holds(1);
  BarrierAtRead();
  Same(Text(far.client.CommandArgv({"EXISTS", "held"})), "0");
}

void Pipelines(Connection& near, Connection& far) {
  const antipode::ScopeGuard request;
  near.client.AppendCommand("SET %s %s", "one", "1");
  near.client.AppendCommandArgv({"LPUSH", "one", "x"});
  near.client.AppendCommandArgv({"INCR", "two"});
  Holds(0);
  Same(Text(near.client.GetReply()), "OK");
  Holds(1);
  Check(Text(near.client.GetReply()).rfind("WRONGTYPE", 0) == 0, "a refusal stays one");
  near.client.AppendCommandArgv({"PING"});
  Same(Text(near.client.GetReply()), "1");
  Same(Text(near.client.GetReply()), "PONG");
  BarrierAtRead();
  far.client.AppendCommandArgv({"GET", "one"});
  far.client.AppendCommandArgv({"PING"});
  far.client.AppendCommandArgv({"GET", "two"});
  Same(Text(far.client.GetReply()), "1");
  Same(Text(far.client.GetReply()), "PONG");
  Same(Text(far.client.GetReply()), "1");
}

void Transactions(Connection& near, Connection& far) {
  const antipode::ScopeGuard request;
  Same(Text(near.client.CommandArgv({"MULTI"})), "OK");
  Same(Text(near.client.CommandArgv({"SET", "t", "1"})), "QUEUED");
  Holds(0);
  for (const char* word : {"INCR", "GET"}) near.client.AppendCommandArgv({word, "t"});
  near.client.AppendCommandArgv({"EXEC"});
  near.client.AppendCommandArgv({"GET", "t"});
  for (const char* reply : {"QUEUED", "QUEUED", "array of 3", "2"}) Same(Text(near.client.GetReply()), reply);
  Holds(1);
  BarrierAtRead();
  far.client.CommandArgv({"MULTI"});
  far.client.CommandArgv({"GET", "t"});
  const OwnedReply replies = far.client.CommandArgv({"EXEC"});
  Same(replies->element[0]->str, "2");
}

void NothingWritten(Connection& near, Connection&) {
  near.client.CommandArgv({"SET", "t", "1"});
  {
    const antipode::ScopeGuard request;
    for (const char* word : {"MULTI", "GET t", "EXEC", "MULTI", "INCR t", "DISCARD"}) near.client.Command(word);
    Same(Text(near.client.CommandArgv({"LPUSH", "t", "x"})).substr(0, 9), "WRONGTYPE");
    Holds(0);
  }
  const antipode::ScopeGuard request;
  near.client.CommandArgv({"WATCH", "t"});
  near.client.CommandArgv({"INCR", "t"});
  for (const char* word : {"MULTI", "INCR t", "EXEC"}) near.client.AppendCommand(word);
  for (const char* reply : {"OK", "QUEUED", "nil"}) Same(Text(near.client.GetReply()), reply);
  Holds(1);
}

void Scripts(Connection& near, Connection& far) {
  {
    const antipode::ScopeGuard request;
    Same(Text(near.client.Command("EVAL %s 1 %s", "return redis.call('SET', KEYS[1], '1')", "script")), "OK");
    Holds(1);
    BarrierAtRead();
    Same(Text(far.client.Command("EVAL_RO %s 1 %s", "return redis.call('GET', KEYS[1])", "script")), "1");
  }
  const antipode::ScopeGuard request;
  Same(Text(far.client.Command("EVAL %s 0", "return 1")), "1");
  Same(Text(near.client.Command("EVALSHA %s 0", "0123456789012345678901234567890123456789")).substr(0, 8), "NOSCRIPT");
  Holds(0);
}

/// What was watched stays watched after a read that was held back.
void Watched(Connection& near, Connection& far) {
  const antipode::ScopeGuard request;
  near.client.CommandArgv({"SET", "w", "1"});
  BarrierAtRead();
  far.client.CommandArgv({"WATCH", "w"});
  const auto promise = antipode::MakePromise("posts", std::chrono::seconds(60));
  {
    const antipode::Fulfilling branch(promise);
    near.client.CommandArgv({"SET", "w", "2"});
  }
  BarrierAtRead(0.2);
  Throws<antipode::BarrierTimeout>([&] { far.client.CommandArgv({"GET", "w"}); });
  antipode::Stop();
  near.client.CommandArgv({"WAIT", "1", "5000"});
  for (const char* word : {"MULTI", "GET w", "EXEC"}) far.client.AppendCommand(word);
  for (const char* reply : {"OK", "QUEUED", "nil"}) Same(Text(far.client.GetReply()), reply);
}

/// A barrier within a transaction cannot be met there.
void Within(Connection& near, Connection& far) {
  const antipode::ScopeGuard request;
  far.client.CommandArgv({"MULTI"});
  near.client.CommandArgv({"SET", "within", "1"});
  BarrierAtRead();
  Throws<antipode::UnmetError>([&] { far.client.CommandArgv({"GET", "within"}); });
}

void Late(Connection& near, Connection& far) {
  const antipode::ScopeGuard request;
  near.client.CommandArgv({"SET", "late", "1"});
  BarrierAtRead(0.1);
  Throws<antipode::BarrierTimeout>([&] { far.client.CommandArgv({"GET", "late"}); });
  Same(Text(far.client.CommandArgv({"PING"})), "PONG");
}

/// The server holds writes up for longer than the client waits: each of these may be done all the same.
void Lost(Connection& near, Connection&) {
  redisContext* other = redisConnect(near.context->tcp.host, near.context->tcp.port);
  const auto say = [&](const char* command) { freeReplyObject(redisCommand(other, command)); };
  for (const char* script : {"SET lost 1", "EVAL return(1) 0", "MULTI,SET lost 2,EXEC", "PING,SET lost 3"}) {
    say("CLIENT PAUSE 60000 WRITE");
    redisSetTimeout(near.context, {0, 200'000});
    const antipode::ScopeGuard request;
    std::string left(script);
    while (!left.empty()) {
      const std::size_t end = std::min(left.find(','), left.size());
      near.client.AppendCommand(left.substr(0, end).c_str());
      left.erase(0, end + 1);
    }
    while (near.client.GetReply()) continue;
    Check(near.context->err != 0, "the context says that it is lost");
    Holds(0, "in_doubt");
    Check(near.client.CommandArgv({"SET", "lost", "4"}) == nullptr, "a lost context stays lost");
    say("CLIENT UNPAUSE");
    Check(near.client.Reconnect(), "it connects again");
    near.client.CommandArgv({"SET", "lost", "5"});
    Holds(1, "in_doubt");
  }
  redisFree(other);
}

/// A user who may not ask for positions: a write is marked, and a read that must wait for another is refused.
void Refused(Connection& near, Connection& far) {
  const auto as_plain = [](Connection& with) {
    with.client.Command("ACL SETUSER plain on >secret ~* +@all -info");
    redisContext* context = redisConnect(with.context->tcp.host, with.context->tcp.port);
    freeReplyObject(redisCommand(context, "AUTH plain secret"));
    return context;
  };
  redisContext* here = as_plain(near);
  redisContext* there = as_plain(far);
  {
    antipode::redis::Client writer(near.shim, here);
    const antipode::ScopeGuard request;
    writer.CommandArgv({"SET", "refused", "1"});
    Holds(0, "unsampled");
  }
  {
    antipode::redis::Client reader(far.shim, there);
    const antipode::ScopeGuard request;
    near.client.CommandArgv({"SET", "refused", "3"});
    BarrierAtRead();
    Throws<antipode::ConfigurationError>([&] { reader.CommandArgv({"GET", "refused"}); });
    Same(Text(reader.CommandArgv({"PING"})), "PONG");
  }
  for (Connection* each : {&near, &far}) each->client.Command("ACL DELUSER plain");
  redisFree(here);
  redisFree(there);
}

/// Behind commands, the messages of a subscription are read as they come.
void Subscriptions(Connection& near, Connection& far) {
  const antipode::ScopeGuard request;
  far.client.AppendCommandArgv({"PING"});
  far.client.AppendCommandArgv({"SUBSCRIBE", "a", "b"});
  Same(Text(far.client.GetReply()), "PONG");
  for (int nth = 0; nth < 2; ++nth) Same(Text(far.client.GetReply()), "array of 3");
  near.client.CommandArgv({"PUBLISH", "b", "hello"});
  const OwnedReply message = far.client.GetReply();
  Same(message->element[2]->str, "hello");
  Holds(0);
}

void Silent(Connection& near, Connection&) {
  Throws<antipode::ConfigurationError>([&] { near.client.CommandArgv({"CLIENT", "REPLY", "OFF"}); });
  Same(Text(near.client.CommandArgv({"PING"})), "PONG");
}

/// A child process waits and reads over connections of its own, and its parent goes on.
void Forked(Connection& near, Connection& far) {
  Check(ForksWell(*near.shim, *far.shim), "both processes read what they wrote");
}

}  // namespace

int main(int, char** arguments) {
  const std::map<std::string, std::function<void(Connection&, Connection&)>> checks{{"held", Held},
                                                                                    {"pipelines", Pipelines},
                                                                                    {"transactions", Transactions},
                                                                                    {"nothing", NothingWritten},
                                                                                    {"scripts", Scripts},
                                                                                    {"watched", Watched},
                                                                                    {"within", Within},
                                                                                    {"late", Late},
                                                                                    {"lost", Lost},
                                                                                    {"refused", Refused},
                                                                                    {"subscriptions", Subscriptions},
                                                                                    {"silent", Silent},
                                                                                    {"forked", Forked}};
  const Region there(arguments[1], antipode::ReadsFrom::kPrimary);
  const Region here(arguments[2], antipode::ReadsFrom::kReplica);
  Connection near(there);
  Connection far(here);
  checks.at(arguments[3])(near, far);
}
