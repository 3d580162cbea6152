// One service, in each way in which gRPC lets it be written.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "antipode/grpc.h"
#include "calls.grpc.pb.h"

namespace antipode::test {

inline constexpr char kFails[] = "fails";
inline constexpr char kThrows[] = "throws";
inline constexpr char kUnavailable[] = "unavailable";

/// Writes what the request says, and answers with what the current scope held before.
inline ::grpc::Status Handle(const Text& request, Text& response) {
  response.set_text(Current().Serialize());
  RecordWrite({"posts", request.text(), std::uint64_t{7}});
  if (request.text() == kFails) return {::grpc::StatusCode::FAILED_PRECONDITION, "as it was asked to"};
  if (request.text() == kThrows) throw std::runtime_error("as it was asked to");
  if (request.text() == kUnavailable) return {::grpc::StatusCode::UNAVAILABLE, "as it was asked to"};
  return ::grpc::Status::OK;
}

class Synchronous final : public Calls::Service {
 public:
  ::grpc::Status Unary(::grpc::ServerContext* context, const Text* request, Text* response) override {
    ::grpc::Status status = Handle(*request, *response);
    for (const auto& [name, value] : context->client_metadata()) {
      if (name != "answer-bytes") continue;
      context->AddTrailingMetadata("large", std::string(std::stoul({value.data(), value.size()}), 'x'));
    }
    return status;
  }

  ::grpc::Status Up(::grpc::ServerContext*, ::grpc::ServerReader<Text>* reader, Text* response) override {
    Text request;
    while (reader->Read(&request)) (void)Handle(request, *response);
    return ::grpc::Status::OK;
  }

  ::grpc::Status Down(::grpc::ServerContext*, const Text* request, ::grpc::ServerWriter<Text>* writer) override {
    Text response;
    ::grpc::Status status = Handle(*request, response);
    writer->Write(response);
    RecordWrite({"posts", "after " + request->text(), std::uint64_t{8}});
    return status;
  }

  ::grpc::Status Both(::grpc::ServerContext*, ::grpc::ServerReaderWriter<Text, Text>* stream) override {
    Text request;
    Text response;
    while (stream->Read(&request)) {
      (void)Handle(request, response);
      stream->Write(response);
    }
    return ::grpc::Status::OK;
  }
};

class Callback final : public Calls::CallbackService {
 public:
  ::grpc::ServerUnaryReactor* Unary(::grpc::CallbackServerContext* context, const Text* request,
                                    Text* response) override {
    const ScopeGuard guard(antipode::rpc::ScopeOf(*context));
    auto* reactor = context->DefaultReactor();
    reactor->Finish(Handle(*request, *response));
    return reactor;
  }

  ::grpc::ServerBidiReactor<Text, Text>* Both(::grpc::CallbackServerContext* context) override {
    class Conversation final : public ::grpc::ServerBidiReactor<Text, Text> {
     public:
      explicit Conversation(::grpc::CallbackServerContext& of) : context_(of) { StartRead(&request_); }
      void OnReadDone(bool ok) override {
        const ScopeGuard guard(antipode::rpc::ScopeOf(context_));
        if (!ok) return Finish(::grpc::Status::OK);
        (void)Handle(request_, response_);
        StartWrite(&response_);
      }
      void OnWriteDone(bool) override { StartRead(&request_); }
      void OnDone() override { delete this; }

     private:
      ::grpc::CallbackServerContext& context_;
      Text request_;
      Text response_;
    };
    return new Conversation(*context);
  }
};

}  // namespace antipode::test
