// What the library adds to one call, as JSON: tests/budgets/test_cpp.py, which gives a Redis primary and its port.
#include <hiredis/hiredis.h>

#include <functional>
#include <future>
#include <iostream>
#include <nlohmann/json.hpp>

#include "antipode/barrier.h"
#include "antipode/redis_client.h"
#include "budgets/counting.h"

namespace antipode::budgets {
namespace {

constexpr int kWarm = 20;   ///< After so many calls all caches are filled.
constexpr int kAlike = 10;  ///< What came to the same so often is the count,
constexpr int kMost = 200;  ///< of at most so many calls.
constexpr int kPipelined = 40;

using Call = std::function<void()>;

void Nothing() {}

/// What one call comes to, in the scope of a request or in none.
Counts Once(const Call& call, bool in_request) {
  std::optional<ScopeGuard> request;
  if (in_request) request.emplace();
  Begin();
  call();
  return End();
}

/// The same once all is warm. Replies may arrive in pieces on a busy machine: such calls do not come so often.
Counts Steady(const Call& call, bool in_request) {
  std::map<Counts, int> came;
  for (int nth = 0; nth < kMost; ++nth) {
    const Counts counts = Once(call, in_request);
    if (nth >= kWarm && ++came[counts] == kAlike) return counts;
  }
  throw std::runtime_error("no calls came to the same");
}

/// Its templates are the standard library's, which allocate.
std::string Compiler() {
#ifdef __clang__
  return "clang-" + std::to_string(__clang_major__);
#else
  return "gcc-" + std::to_string(__GNUC__);
#endif
}

/// By client: the release.
using Drivers = std::map<std::string, std::string>;

Drivers Hiredis() {
  return {{"hiredis",
           std::to_string(HIREDIS_MAJOR) + "." + std::to_string(HIREDIS_MINOR) + "." + std::to_string(HIREDIS_PATCH)}};
}

/// One line a call: `{"line": ..., "added": [[what, offset, count], ...], ...}`.
void Print(const std::string& line, const Drivers& drivers, const Counts& ours, const Counts& plain) {
  Counts added = ours;
  for (const auto& [at, count] : plain) added[at] -= count;
  nlohmann::json found = nlohmann::json::array();
  for (const auto& [at, count] : added) {
    if (count != 0) found.push_back({at.first, at.second, count});
  }
  std::cout << nlohmann::json{{"line", line}, {"added", found}, {"drivers", drivers}, {"compiler", Compiler()}} << "\n";
}

void InProcess(const std::string& line, const Call& call, const Drivers& drivers = {}) {
  Print(line, drivers, Steady(call, false), Steady(Nothing, false));
}

Lineage Three() {
  LineageParts parts;
  for (const char* name : {"a", "b", "c"}) {
    parts.writes.push_back({name, std::string("log-") + name, std::uint64_t{7}, 490'000, false});
  }
  return Lineage(parts);
}

void CountCore() {
  const Lineage three = Three();
  const std::string text = Serialize(three);
  InProcess("scope: empty", [] { const ScopeGuard request; });
  InProcess("scope: 3 entries", [&] { const ScopeGuard request(three); });
  InProcess("scope: text of 3 entries", [&] { const ScopeGuard request(Scope::Received(text)); });
  InProcess("encode: 3 entries", [&] { static_cast<void>(Serialize(three)); });
  InProcess("decode: 3 entries", [&] { static_cast<void>(Lineage::Deserialize(text)); });
}

void Answered(redisContext* context) {
  void* reply = nullptr;
  if (redisGetReply(context, &reply) != REDIS_OK) throw redis::Error(context->errstr);
  freeReplyObject(reply);
}

void CountCommand(redis::Client& client, redisContext* plain, const char* name, const char* command) {
  Print(std::string("hiredis: ") + name, Hiredis(), Steady([&] { client.Command(command); }, true),
        Steady([&] { freeReplyObject(redisCommand(plain, command)); }, true));
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
  Print("hiredis: pipeline of 40 SETs", Hiredis(), Steady(ours, true), Steady(theirs, true));
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
      },
      Hiredis());
}

void CountRedis(const char* host, int port) {
  const auto shim = redis::Shim::Open("posts", host, static_cast<std::uint16_t>(port));
  redisContext* plain = redisConnect(host, port);
  redisContext* context = redisConnect(host, port);
  redis::Client client(shim, context);
  CountCommand(client, plain, "SET", "SET budget value");
  CountCommand(client, plain, "GET", "GET budget");
  CountPipeline(client, plain);
  CountBarriers(client);
  redisFree(context);
  redisFree(plain);
  shim->Close();
}

}  // namespace
}  // namespace antipode::budgets

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  antipode::budgets::CountCore();
  antipode::budgets::CountRedis(argv[1], std::stoi(argv[2]));
}
