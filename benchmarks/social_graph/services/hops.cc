#include "hops.h"

#include <cstdlib>

#include "service.h"

namespace social_graph {
namespace {

namespace hook = grpc::experimental;

bool Measured() {
  static const bool measured = std::getenv("SOCIAL_GRAPH_HOPS") != nullptr;
  return measured;
}

void Say(const std::string& hop, std::size_t bytes) {
  Process::Say("{\"hop\": \"" + hop + "\", \"bytes\": " + std::to_string(bytes) + "}");
}

class Received final : public hook::Interceptor {
 public:
  explicit Received(const hook::ServerRpcInfo* call) : method_(call->method()) {}
  void Intercept(hook::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(hook::InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      const auto found = methods->GetRecvInitialMetadata()->find("baggage");
      if (found != methods->GetRecvInitialMetadata()->end()) Say(method_, found->second.size());
    }
    methods->Proceed();
  }

 private:
  const std::string method_;
};

class Receiving final : public hook::ServerInterceptorFactoryInterface {
  hook::Interceptor* CreateServerInterceptor(hook::ServerRpcInfo* call) override { return new Received(call); }
};

class Calling final : public hook::Interceptor {
 public:
  explicit Calling(const hook::ClientRpcInfo* call) : method_(call->method()), began_ns_(Process::NowNs()) {}
  void Intercept(hook::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(hook::InterceptionHookPoints::POST_RECV_STATUS)) {
      Process::Say("{\"call\": \"" + method_ + "\", \"began_ns\": " + std::to_string(began_ns_) +
                   ", \"ended_ns\": " + std::to_string(Process::NowNs()) + "}");
    }
    methods->Proceed();
  }

 private:
  const std::string method_;
  const std::int64_t began_ns_;
};

class Made final : public hook::ClientInterceptorFactoryInterface {
  hook::Interceptor* CreateClientInterceptor(hook::ClientRpcInfo* call) override { return new Calling(call); }
};

}  // namespace

std::vector<antipode::rpc::ClientInterceptorFactory> CallsTimed() {
  std::vector<antipode::rpc::ClientInterceptorFactory> factories;
  if (Measured()) factories.push_back(std::make_unique<Made>());
  return factories;
}

std::vector<antipode::rpc::ServerInterceptorFactory> CallsMeasured() {
  std::vector<antipode::rpc::ServerInterceptorFactory> factories;
  if (Measured()) factories.push_back(std::make_unique<Receiving>());
  return factories;
}

void MeasureMessage(const antipode::Headers& headers) {
  if (!Measured()) return;
  for (const auto& [name, value] : headers) {
    if (name == "baggage") Say("the message", value.size());
  }
}

}  // namespace social_graph
