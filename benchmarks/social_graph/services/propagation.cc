#include "propagation.h"

#include <opentelemetry/baggage/propagation/baggage_propagator.h>
#include <opentelemetry/context/propagation/composite_propagator.h>
#include <opentelemetry/trace/propagation/http_trace_context.h>

#include <algorithm>
#include <optional>
#include <random>

namespace social_graph::propagation {
namespace {

namespace api = opentelemetry;
namespace hook = grpc::experimental;

class Carrier final : public api::context::propagation::TextMapCarrier {
 public:
  Carrier() = default;
  explicit Carrier(const Headers& headers) : headers_(headers) {}
  api::nostd::string_view Get(api::nostd::string_view key) const noexcept override {
    const auto found = std::find_if(headers_.begin(), headers_.end(),
                                    [&](const auto& each) { return api::nostd::string_view(each.first) == key; });
    return found == headers_.end() ? api::nostd::string_view() : api::nostd::string_view(found->second);
  }
  void Set(api::nostd::string_view key, api::nostd::string_view value) noexcept override {
    headers_.emplace_back(std::string(key), std::string(value));
  }
  [[nodiscard]] const Headers& headers() const { return headers_; }

 private:
  Headers headers_;
};

api::context::propagation::TextMapPropagator& Propagator() {
  static auto& composite = *[] {
    std::vector<std::unique_ptr<api::context::propagation::TextMapPropagator>> both;
    both.push_back(std::make_unique<api::trace::propagation::HttpTraceContext>());
    both.push_back(std::make_unique<api::baggage::propagation::BaggagePropagator>());
    return new api::context::propagation::CompositePropagator(std::move(both));
  }();
  return composite;
}

class Client final : public hook::Interceptor {
 public:
  void Intercept(hook::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(hook::InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      for (auto& header : Sent()) methods->GetSendInitialMetadata()->insert(std::move(header));
    }
    methods->Proceed();
  }
};

class Server final : public hook::Interceptor {
 public:
  void Intercept(hook::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(hook::InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      Headers headers;
      for (const auto& [name, value] : *methods->GetRecvInitialMetadata()) {
        headers.emplace_back(std::string(name.data(), name.size()), std::string(value.data(), value.size()));
      }
      received_.emplace(headers);  // The handler runs on this thread, up to the status.
    }
    if (methods->QueryInterceptionHookPoint(hook::InterceptionHookPoints::PRE_SEND_STATUS)) received_.reset();
    methods->Proceed();
  }

 private:
  std::optional<Received> received_;
};

struct Clients final : hook::ClientInterceptorFactoryInterface {
  hook::Interceptor* CreateClientInterceptor(hook::ClientRpcInfo*) override { return new Client; }
};
struct Servers final : hook::ServerInterceptorFactoryInterface {
  hook::Interceptor* CreateServerInterceptor(hook::ServerRpcInfo*) override { return new Server; }
};

std::string RandomHex(int digits) {
  thread_local std::mt19937_64 random(std::random_device{}());
  std::string text;
  for (int digit = 0; digit < digits; ++digit) text += "0123456789abcdef"[random() % 16];
  return text;
}

}  // namespace

Headers Sent() {
  Carrier carrier;
  Propagator().Inject(carrier, api::context::RuntimeContext::GetCurrent());
  return carrier.headers();
}

Received::Received(const Headers& headers) {
  auto around = api::context::RuntimeContext::GetCurrent();
  token_ = api::context::RuntimeContext::Attach(Propagator().Extract(Carrier(headers), around));
}

Headers Begun(Headers headers) {
  const bool traced =
      std::any_of(headers.begin(), headers.end(), [](const auto& each) { return each.first == "traceparent"; });
  if (!traced) {
    headers.emplace_back("traceparent", "00-1" + RandomHex(31) + "-1" + RandomHex(15) + "-01");
    headers.emplace_back("baggage", "region=us");
  }
  return headers;
}

std::vector<std::unique_ptr<hook::ClientInterceptorFactoryInterface>> Calling() {
  std::vector<std::unique_ptr<hook::ClientInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<Clients>());
  return factories;
}

std::vector<std::unique_ptr<hook::ServerInterceptorFactoryInterface>> Serving() {
  std::vector<std::unique_ptr<hook::ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<Servers>());
  return factories;
}

}  // namespace social_graph::propagation
