#include <hiredis/hiredis.h>

#include <future>
#include <thread>

#include "antipode/barrier.h"
#include "antipode/redis_client.h"
#include "barrier/watcher.h"
#include "budgets/calls.h"
#include "budgets/counting.h"
#include "client_checks.h"

namespace antipode::budgets {
namespace {

constexpr int kPipelined = 40;

Drivers Hiredis() {
  return {{"hiredis",
           std::to_string(HIREDIS_MAJOR) + "." + std::to_string(HIREDIS_MINOR) + "." + std::to_string(HIREDIS_PATCH)}};
}

void Answered(redisContext* context) {
  void* reply = nullptr;
  if (redisGetReply(context, &reply) != REDIS_OK) throw redis::Error(context->errstr);
  freeReplyObject(reply);
}

void CountCommand(redis::Client& client, redisContext* plain, const char* name, const char* command) {
  Compare(
      std::string("hiredis: ") + name, Hiredis(), [&] { client.Command(command); },
      [&] { freeReplyObject(redisCommand(plain, command)); });
}

void CountPipeline(redis::Client& client, redisContext* plain) {
  const Call ours = [&] {
    for (int nth = 0; nth < kPipelined; ++nth) client.AppendCommand("SET budget %d", nth);
    for (int nth = 0; nth < kPipelined; ++nth) client.GetReply();
  };
  const Call theirs = [&] {
    for (int nth = 0; nth < kPipelined; ++nth) redisAppendCommand(plain, "SET budget %d", nth);
    for (int nth = 0; nth < kPipelined; ++nth) Answered(plain);
  };
  Compare("hiredis: pipeline of 40 SETs", Hiredis(), ours, theirs);
}

void CountBarriers(redis::Client& client) {
  BarrierOptions options;
  options.timeout = std::chrono::seconds(5);
  {
    const ScopeGuard request;
    client.Command("SET budget visible");
    options.lineage = Current();
  }
  InProcess(
      "barrier: Redis, visible, called", [&] { Barrier(options); }, Hiredis());
  InProcess(
      "barrier: Redis, visible, callback",
      [&] {
        std::promise<void> called;
        BarrierCallback([&](const BarrierResult&) { called.set_value(); }, options);
        called.get_future().wait();
        const Uncounted waiting;  // The watcher goes on after it has called back, and ends.
        while (!WatchersAtWork().empty()) std::this_thread::yield();
      },
      Hiredis());
}

}  // namespace

void CountRedis(const Words& words) {
  const checks::Server server(words.at(0));
  const auto shim = redis::Shim::Open(kDatastore, server.host, server.port);
  redisContext* plain = redisConnect(server.host.c_str(), server.port);
  redisContext* context = redisConnect(server.host.c_str(), server.port);
  redis::Client client(shim, context);
  CountCommand(client, plain, "SET", "SET budget value");
  CountCommand(client, plain, "GET", "GET budget");
  CountPipeline(client, plain);
  CountBarriers(client);
  redisFree(context);
  redisFree(plain);
  shim->Close();
}

}  // namespace antipode::budgets
