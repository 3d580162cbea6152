// What a service does with the installed package. Exits with 0 where
// the library did as the README says.
#include <chrono>
#include <string>
#include <thread>

#include "antipode/barrier.h"
#include "antipode/observer.h"
#include "antipode/propagation.h"

bool WaitsWithoutExceptions();

namespace {

/// Where there is nothing to wait for, a barrier succeeds at once;
/// where nothing can wait, it says so.
bool Waits() {
  antipode::BarrierOptions options;
  options.timeout = std::chrono::seconds(5);
  const auto attempt = antipode::TryBarrier(options);
  return !attempt && attempt.code == "unknown_datastore";
}

}  // namespace

int main() {
  const antipode::Headers headers{
      {"baggage", "antipode=1~kposts.5.log,tenant=acme"}};
  const antipode::ScopeGuard request(antipode::Extract(headers));
  std::thread([captured = antipode::Capture()] {
    const antipode::ScopeGuard guard(captured);
    antipode::Append({"users", "log", std::uint64_t{7}, 400'000});
  }).join();

  antipode::OutgoingCall call("http", "posts.internal", {}, "/v1");
  antipode::Headers outgoing;
  call.Outfit(outgoing);
  call.Answered(200, "1~kposts.6.log");

  antipode::Headers response;
  antipode::InjectResponse(*request.scope(), response);
  request.scope()->End();

  const bool sent =
      outgoing.size() == 2 &&
      outgoing[0].second.find("users") != std::string::npos;
  const bool answered =
      response.size() == 1 &&
      response[0].second.find("6.log") != std::string::npos;
  return sent && answered && Waits() && WaitsWithoutExceptions() &&
                 !antipode::Metrics().empty()
             ? 0
             : 1;
}
