// OpenTelemetry's own propagation, as a service has it that knows nothing of Antipode: a trace's ids and baggage go
// with each call and each message. Of its API alone: no spans are recorded.
#pragma once

#include <grpcpp/grpcpp.h>
#include <opentelemetry/context/runtime_context.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace social_graph::propagation {

using Headers = std::vector<std::pair<std::string, std::string>>;

/// What goes with a message, or a call, that is sent now.
Headers Sent();

/// What came with a request is current on this thread, as long as this lives.
class Received {
 public:
  explicit Received(const Headers& headers);

 private:
  std::unique_ptr<opentelemetry::context::Token> token_;
};

/// The headers of a request that begins here: a new trace, where it came with none.
Headers Begun(Headers headers);

std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> Calling();
/// For synchronous handlers.
std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> Serving();

}  // namespace social_graph::propagation
