// One request of a service: what it came with, what it writes, whom it
// calls, and what it waits for.
#include <antipode/barrier.h>
#include <antipode/propagation.h>

#include <iostream>

int main() {
  // A request arrives. Its caller has written a post, which the header
  // `baggage` says.
  const antipode::Headers headers{
      {"baggage", "antipode=1~kposts.5.log,tenant=acme"}};
  const antipode::ScopeGuard request(antipode::Extract(headers));

  // It writes. A shim calls this once its store has acknowledged a
  // write.
  antipode::RecordWrite({"users", "log", std::uint64_t{7}});

  // It calls another service, which has the lineage then, and merges
  // what that one has written.
  antipode::OutgoingCall call("http", "timeline.internal", {}, "/v1");
  antipode::Headers outgoing;
  call.Outfit(outgoing);
  std::cout << "sent: " << outgoing.size() << " headers\n";
  call.Answered(200, "1~kfeeds.3.log");
  for (const antipode::WriteId& write : antipode::Current().writes())
    std::cout << "depends on " << write.datastore << '\n';

  // Before it reads, it waits until the store shows what the request
  // depends on. Here no shim knows the store.
  antipode::BarrierOptions options;
  options.timeout = std::chrono::seconds(5);
  options.only = {{"posts"}};
  if (const auto attempt = antipode::TryBarrier(options); !attempt)
    std::cout << "barrier: " << attempt.code << '\n';

  // Its answer carries back what it added, and not what its caller has
  // sent.
  antipode::Headers response;
  antipode::InjectResponse(*request.scope(), response);
  std::cout << "answered: " << response.at(0).first << '\n';
}
