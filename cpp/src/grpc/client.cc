// The calls of a channel: what they carry, and what their end says.
#include <grpcpp/create_channel.h>
#include <grpcpp/support/status.h>

#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "antipode/grpc.h"
#include "antipode/observer.h"
#include "antipode/propagation.h"
#include "antipode/settings.h"
#include "grpc/metadata.h"
#include "grpc/target.h"

namespace antipode::rpc {
namespace {

using ::grpc::StatusCode;
using ::grpc::experimental::ClientRpcInfo;
using ::grpc::experimental::InterceptionHookPoints;
using ::grpc::experimental::InterceptorBatchMethods;

/// Codes that gRPC itself never makes up: with one of them the service has answered.
bool IsAnswer(StatusCode code) {
  static const auto& kCodes = *new std::set<StatusCode>{StatusCode::OK,
                                                        StatusCode::INVALID_ARGUMENT,
                                                        StatusCode::NOT_FOUND,
                                                        StatusCode::ALREADY_EXISTS,
                                                        StatusCode::FAILED_PRECONDITION,
                                                        StatusCode::ABORTED,
                                                        StatusCode::OUT_OF_RANGE,
                                                        StatusCode::DATA_LOSS};
  return kCodes.count(code) != 0;
}

/// Whether nobody executed a call: it was refused, or no connection could be made for it.
bool NotExecuted(const ::grpc::Status& status) {
  const StatusCode code = status.error_code();
  return code == StatusCode::UNIMPLEMENTED || code == StatusCode::UNAUTHENTICATED ||
         code == StatusCode::PERMISSION_DENIED ||
         (code == StatusCode::UNAVAILABLE && SaysUnsent(status.error_message()));
}

/// What the calls of a channel have in common.
struct ChannelFacts {
  std::string target;
  std::vector<std::string> hosts;
  bool retries;  ///< Whether what ends a call may be the attempt after one that was executed.
};

/// Whether a channel may send a call again by a policy.
bool MayRetry(const std::string& target, const ::grpc::ChannelArguments& arguments) {
  bool resolves = ResolvesPolicies(target);
  bool stated = false;
  const grpc_channel_args given = arguments.c_channel_args();
  for (std::size_t i = 0; i < given.num_args; ++i) {
    const grpc_arg& each = given.args[i];
    const std::string_view key = each.key;
    if (key == "grpc.enable_retries" && each.value.integer == 0) return false;
    if (key == "grpc.service_config_disable_resolution" && each.value.integer == 0) resolves = true;
    if (key == "grpc.service_config") stated = std::string_view(each.value.string).find("Policy") != std::string::npos;
  }
  return resolves || stated;
}

class Calling final : public ::grpc::experimental::Interceptor {
 public:
  Calling(std::shared_ptr<const ChannelFacts> channel, ClientRpcInfo* info)
      : channel_(std::move(channel)), method_(info->method()), captured_(Capture()) {}

  /// Given up: nobody will learn how the call ended.
  ~Calling() override {
    Safely([this] { End([](OutgoingCall& call) { call.Failed(); }); });
  }

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      Safely([&] { Send(methods->GetSendInitialMetadata()); });
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_STATUS)) {
      Safely([&] { Judge(methods->GetRecvStatus(), methods->GetRecvTrailingMetadata()); });
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) Safely([&] { Stream(); });
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

  void Send(Entries* entries) {
    if (entries == nullptr || call_) return;
    const ScopeGuard guard(captured_);
    const std::string service = ServiceOf(method_);
    call_.emplace(CallTarget{service, channel_->target + " " + service, channel_->hosts, method_});
    Outfit(*call_, *entries, method_.size() + channel_->target.size());
    beside_.emplace(captured_.scope());
  }

  /// A message has come, or the end of messages, before the status: whoever gives the call up now may do it unseen,
  /// since readers of gRPC notify nobody when they are destroyed.
  void Stream() {
    const std::lock_guard guard(lock_);
    if (beside_ && call_->MayBeInDoubt()) beside_->Streams(ServiceOf(method_));
  }

  template <typename Judgement>
  void End(Judgement judgement) {
    const std::lock_guard guard(lock_);
    if (!call_ || ended_) return;
    ended_ = true;
    judgement(*call_);  // Before the branch is over: no barrier begins between the two.
    beside_.reset();
  }

  void Judge(const ::grpc::Status* status, const std::multimap<::grpc::string_ref, ::grpc::string_ref>* received) {
    Entries trailing;
    if (received != nullptr) {
      for (const auto& [name, value] : *received) {
        trailing.emplace(std::string(name.data(), name.size()), std::string(value.data(), value.size()));
      }
    }
    End([&](OutgoingCall& call) {
      const auto lineages = TakeLineages(trailing);
      const bool known = status != nullptr && !MayHaveLostAnswer(trailing);
      if (!lineages.empty()) {
        for (const std::string& each : lineages) call.Answered(0, each);
      } else if (known && IsAnswer(status->error_code())) {
        call.AnsweredWithout(status->ok());
      } else if (!known || channel_->retries || !NotExecuted(*status)) {
        call.Failed();
      }
    });
  }

  std::shared_ptr<const ChannelFacts> channel_;
  std::string method_;
  Captured captured_;
  std::mutex lock_;  ///< A read and the end of a call may come on two threads.
  std::optional<OutgoingCall> call_;
  std::optional<OpenBranch> beside_;
  bool ended_ = false;
};

class CallingFactory final : public ::grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit CallingFactory(ChannelFacts channel) : channel_(std::make_shared<const ChannelFacts>(std::move(channel))) {}
  ::grpc::experimental::Interceptor* CreateClientInterceptor(ClientRpcInfo* info) override {
    return Disabled() ? nullptr : new Calling(channel_, info);
  }

 private:
  std::shared_ptr<const ChannelFacts> channel_;
};

}  // namespace

ClientInterceptorFactory ClientInterceptor(const std::string& target, const ::grpc::ChannelArguments& arguments) {
  return std::make_unique<CallingFactory>(ChannelFacts{target, HostsOf(target), MayRetry(target, arguments)});
}

std::shared_ptr<::grpc::Channel> CreateChannel(const std::string& target,
                                               const std::shared_ptr<::grpc::ChannelCredentials>& credentials,
                                               const ::grpc::ChannelArguments& arguments,
                                               std::vector<ClientInterceptorFactory> others) {
  others.push_back(ClientInterceptor(target, arguments));
  return ::grpc::experimental::CreateCustomChannelWithInterceptors(target, credentials, arguments, std::move(others));
}

}  // namespace antipode::rpc
