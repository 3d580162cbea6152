#include "service.h"

#include <csignal>
#include <iostream>
#include <stdexcept>

#ifdef ANTIPODE
#include "antipode/grpc.h"
#include "hops.h"
#elif defined(OPENTELEMETRY)
#include "propagation.h"
#endif

namespace social_graph {
namespace {

constexpr char kHost[] = "127.0.0.1";

}  // namespace

Process::Process(int count, char** arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  for (int index = 1; index < count; ++index) {
    const std::string argument = arguments[index];
    const auto equals = argument.find('=');
    if (equals == std::string::npos) throw std::invalid_argument("not NAME=VALUE: " + argument);
    arguments_[argument.substr(0, equals)] = argument.substr(equals + 1);
  }
  Call::limit = std::chrono::seconds(std::stoi(Get("deadline", "5")));
}

std::string Process::operator[](const std::string& name) const {
  const auto found = arguments_.find(name);
  if (found == arguments_.end()) throw std::invalid_argument("missing argument: " + name + "=");
  return found->second;
}

std::string Process::Get(const std::string& name, const std::string& otherwise) const {
  const auto found = arguments_.find(name);
  return found == arguments_.end() ? otherwise : found->second;
}

std::shared_ptr<grpc::Channel> Process::To(const std::string& service) const {
  grpc::ChannelArguments arguments;
  // A service that is started again is found again at once.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
#ifdef ANTIPODE
  return antipode::rpc::CreateChannel((*this)[service], grpc::InsecureChannelCredentials(), arguments, CallsTimed());
#elif defined(OPENTELEMETRY)
  return grpc::experimental::CreateCustomChannelWithInterceptors((*this)[service], grpc::InsecureChannelCredentials(),
                                                                 arguments, propagation::Calling());
#else
  return grpc::CreateCustomChannel((*this)[service], grpc::InsecureChannelCredentials(), arguments);
#endif
}

int Process::Serve(grpc::Service* handlers, Edge* edge) const {
  int port = 0;
  std::unique_ptr<grpc::Server> server;
  if (handlers != nullptr) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(Get("host", kHost) + ":" + Get("port", "0"), grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(handlers);
#ifdef ANTIPODE
    builder.experimental().SetInterceptorCreators(
        antipode::rpc::ServerInterceptors(antipode::rpc::Handlers::kSynchronous, CallsMeasured()));
#elif defined(OPENTELEMETRY)
    builder.experimental().SetInterceptorCreators(propagation::Serving());
#endif
    server = builder.BuildAndStart();
    if (server == nullptr || port == 0) throw std::runtime_error("cannot listen at port " + Get("port", "0"));
  }
  const int http = edge == nullptr ? 0 : edge->Start(Get("host", kHost), std::stoi(Get("http", "0")));
  Say("{\"port\": " + std::to_string(port) + ", \"http\": " + std::to_string(http) + "}");
  std::string line;
  while (std::getline(std::cin, line)) continue;
  // What it has not answered by now, its callers see fail; threads of consumers do not end.
  std::cout.flush();
  std::quick_exit(0);
}

void Process::Say(const std::string& line) {
  static auto& lock = *new std::mutex;
  const std::lock_guard guard(lock);
  std::cout << line << std::endl;
}

std::int64_t Process::NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void Process::Observed(std::int64_t post, const std::string& what) {
  Say("{\"post\": " + std::to_string(post) + ", \"at_ns\": " + std::to_string(NowNs()) + ", \"post_was\": \"" + what +
      "\"}");
}

std::function<void(grpc::Status)> Together::Another() {
  const std::lock_guard guard(lock_);
  ++running_;
  return [this](const grpc::Status& status) {
    const std::lock_guard ending(lock_);
    if (status_.ok()) status_ = status;
    if (--running_ == 0) ended_.notify_all();
  };
}

grpc::Status Together::Wait() {
  std::unique_lock guard(lock_);
  ended_.wait(guard, [this] { return running_ == 0; });
  return status_;
}

}  // namespace social_graph
