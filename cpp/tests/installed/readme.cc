#include <antipode/barrier.h>
#include <antipode/propagation.h>
#include <antipode/redis.h>

#include <iostream>

int main() {
  const auto primary =
      antipode::redis::Shim::Open("posts", "posts.us.internal", 6379);
  antipode::Headers sent;
  {
    // a request arrives, and writes
    const antipode::ScopeGuard request(antipode::Extract({}));
    primary->Write("1", "hello");
    antipode::OutgoingCall call("http", "inbox.internal", {}, "/v1");
    call.Outfit(sent);  // the lineage goes with what it sends
  }
  primary->Close();
  const auto replica =  // another service reads a replica
      antipode::redis::Shim::Open("posts", "posts.eu.internal", 6379,
                                  {antipode::ReadsFrom::kReplica});
  const antipode::ScopeGuard request(antipode::Extract(sent));
  antipode::BarrierOptions options;
  options.timeout = std::chrono::seconds(5);
  // throws one of five errors if it is not there in time
  antipode::Barrier(options);
  std::cout << replica->Read("1").value.value_or("deleted") << '\n';
}
