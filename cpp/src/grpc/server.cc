// The calls that a server serves: their scopes, and the lineage in their trailing metadata.
#include <exception>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "antipode/grpc.h"
#include "antipode/observer.h"
#include "antipode/propagation.h"
#include "antipode/settings.h"
#include "grpc/metadata.h"
#include "grpc/target.h"

namespace antipode::rpc {
namespace {

using ::grpc::experimental::InterceptionHookPoints;
using ::grpc::experimental::InterceptorBatchMethods;
using ::grpc::experimental::ServerRpcInfo;
using Received = std::multimap<::grpc::string_ref, ::grpc::string_ref>;

/// The scopes of the calls that are being served, by the context that their handlers have.
class Serving {
 public:
  static Serving& The() {
    static auto* serving = new Serving;
    return *serving;
  }

  void Add(const ::grpc::ServerContextBase* context, std::shared_ptr<Scope> scope) {
    const std::lock_guard guard(lock_);
    scopes_[context] = std::move(scope);
  }

  void Remove(const ::grpc::ServerContextBase* context) {
    const std::lock_guard guard(lock_);
    scopes_.erase(context);
  }

  std::shared_ptr<Scope> Find(const ::grpc::ServerContextBase* context) {
    const std::lock_guard guard(lock_);
    const auto found = scopes_.find(context);
    return found == scopes_.end() ? nullptr : found->second;
  }

 private:
  std::mutex lock_;
  std::unordered_map<const ::grpc::ServerContextBase*, std::shared_ptr<Scope>> scopes_;
};

std::shared_ptr<Scope> Arrived(const Received& metadata) {
  Headers headers;
  for (const auto& [name, value] : metadata) {
    if (name == kBaggage || name == kSent) {
      headers.emplace_back(std::string(name.data(), name.size()), std::string(value.data(), value.size()));
    }
  }
  return Extract(headers);
}

bool Repeated(const Received& metadata) { return metadata.count(kAttempts) != 0; }

/// What the call added, as it fits with the application's own trailing metadata, of which it takes the lineages.
std::string AnswerFor(Scope& scope, const std::string& service, bool repeated, Entries& own, std::string_view message) {
  // By hand, or by another of these interceptors: the last one speaks for all.
  for (const std::string& text : TakeLineages(own)) ExtractResponse({{kLineage, text}}, service, &scope);
  // What the attempts before this one did is known to nobody.
  if (repeated) scope.MarkIncomplete(service, "in_doubt");
  const auto answer = AnswerOf(scope);
  scope.End();
  return answer ? Fitting(*answer, TrailingRoom(own, message)) : "";
}

class ServedCall final : public ::grpc::experimental::Interceptor {
 public:
  ServedCall(Handlers handlers, ServerRpcInfo* info)
      : context_(info->server_context()),
        method_(info->method()),
        synchronous_(handlers == Handlers::kSynchronous &&
                     dynamic_cast<::grpc::CallbackServerContext*>(context_) == nullptr) {}

  ~ServedCall() override {
    if (!scope_) return;
    scope_->End();
    Serving::The().Remove(context_);
  }

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      Safely([&] { Arrive(methods->GetRecvInitialMetadata()); });
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      current_.reset();
      Safely([&] { Answer(methods->GetSendStatus(), methods->GetSendTrailingMetadata()); });
    }
    methods->Proceed();
  }

 private:
  /// No call fails because of us.
  template <typename Step>
  void Safely(Step step) noexcept {
    try {
      step();
    } catch (const std::exception& error) {
      WarnOnce("grpc_call", method_, "", "the lineage of a call of " + method_ + " is lost: " + error.what());
    }
  }

  void Arrive(const Received* metadata) {
    if (metadata == nullptr || scope_) return;
    repeated_ = Repeated(*metadata);
    scope_ = Arrived(*metadata);
    Serving::The().Add(context_, scope_);
    if (synchronous_) current_.emplace(scope_);
  }

  void Answer(const ::grpc::Status& status, Entries* trailing) {
    if (!scope_ || trailing == nullptr) return;
    const std::string text = AnswerFor(*scope_, ServiceOf(method_), repeated_, *trailing, status.error_message());
    if (!text.empty()) trailing->emplace(kLineage, text);
  }

  ::grpc::ServerContextBase* context_;
  std::string method_;
  bool synchronous_;
  bool repeated_ = false;
  std::shared_ptr<Scope> scope_;
  std::optional<ScopeGuard> current_;  ///< From before a synchronous handler until its status is sent.
};

class ServedCallFactory final : public ::grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit ServedCallFactory(Handlers handlers) : handlers_(handlers) {}
  ::grpc::experimental::Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    return Disabled() ? nullptr : new ServedCall(handlers_, info);
  }

 private:
  Handlers handlers_;
};

}  // namespace

std::vector<ServerInterceptorFactory> ServerInterceptors(Handlers handlers,
                                                         std::vector<ServerInterceptorFactory> others) {
  others.push_back(std::make_unique<ServedCallFactory>(handlers));
  return others;
}

std::shared_ptr<Scope> ScopeOf(const ::grpc::ServerContextBase& context) { return Serving::The().Find(&context); }

std::shared_ptr<Scope> Begin(const ::grpc::ServerContextBase& context) {
  auto served = ScopeOf(context);
  return served ? served : Arrived(context.client_metadata());
}

void Answer(::grpc::ServerContextBase& context, Scope& scope, std::string_view service, std::string_view message) {
  if (ScopeOf(context)) return;  // Our interceptor does.
  Entries none;
  const std::string text = AnswerFor(scope, std::string(service), Repeated(context.client_metadata()), none, message);
  if (!text.empty()) context.AddTrailingMetadata(kLineage, text);
}

}  // namespace antipode::rpc
