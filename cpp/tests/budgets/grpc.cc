#include "antipode/grpc.h"

#include <grpcpp/grpcpp.h>

#include <stdexcept>

#include "budgets/calls.h"
#include "calls.grpc.pb.h"

namespace antipode::budgets {
namespace {

/// Answers, and does nothing else.
class Answers final : public test::Calls::Service {
 public:
  ::grpc::Status Unary(::grpc::ServerContext*, const test::Text*, test::Text* response) override {
    response->set_text("answer");
    return ::grpc::Status::OK;
  }
};

/// A server and a stub of it, instrumented or not.
class Peers {
 public:
  explicit Peers(bool ours) {
    int port = 0;
    ::grpc::ServerBuilder builder;
    builder.AddListeningPort("localhost:0", ::grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    if (ours) {
      builder.experimental().SetInterceptorCreators(antipode::rpc::ServerInterceptors(rpc::Handlers::kSynchronous));
    }
    server_ = builder.BuildAndStart();
    const std::string target = "localhost:" + std::to_string(port);
    const auto credentials = ::grpc::InsecureChannelCredentials();
    stub_ = test::Calls::NewStub(ours ? antipode::rpc::CreateChannel(target, credentials)
                                      : ::grpc::CreateChannel(target, credentials));
  }
  ~Peers() { server_->Shutdown(std::chrono::system_clock::now()); }
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  void Call() {
    ::grpc::ClientContext context;
    test::Text request;
    test::Text response;
    if (!stub_->Unary(&context, request, &response).ok()) throw std::runtime_error("the call failed");
  }

 private:
  Answers service_;
  std::unique_ptr<::grpc::Server> server_;
  std::unique_ptr<test::Calls::Stub> stub_;
};

}  // namespace

void CountGrpc(const Words&) {
  Peers ours(true);
  Peers plain(false);
  Compare(
      "gRPC: unary call, both sides", {{"grpc++", ::grpc::Version()}}, [&] { ours.Call(); }, [&] { plain.Call(); });
}

}  // namespace antipode::budgets
