// A server that other languages call, until its input ends: it writes, and calls whom the request names by target.
#include <iostream>
#include <string>

#include "services.h"

namespace antipode::test {
namespace {

class Peer final : public Calls::Service {
  ::grpc::Status Unary(::grpc::ServerContext*, const Text* request, Text* response) override {
    RecordWrite({"cpp", "post", std::uint64_t{7}});
    const auto channel = antipode::rpc::CreateChannel(request->text(), ::grpc::InsecureChannelCredentials());
    ::grpc::ClientContext context;
    return Calls::NewStub(channel)->Unary(&context, *request, response);
  }
};

}  // namespace
}  // namespace antipode::test

int main() {
  antipode::test::Peer peer;
  int port = 0;
  ::grpc::ServerBuilder builder;
  builder.AddListeningPort("localhost:0", ::grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&peer);
  builder.experimental().SetInterceptorCreators(
      antipode::rpc::ServerInterceptors(antipode::rpc::Handlers::kSynchronous));
  const auto server = builder.BuildAndStart();
  std::cout << port << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) continue;
  server->Shutdown();
}
