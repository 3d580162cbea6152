// Calls between real servers and channels: what they carry, what comes back, and what their end says.
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <thread>

#include "antipode/barrier.h"
#include "antipode/observer.h"
#include "services.h"
#include "settings_guard.h"

namespace imports_names {
using namespace antipode;
/// A program may import our names, and use those of gRPC.
[[maybe_unused]] grpc::Status answer;
}  // namespace imports_names

namespace antipode::test {
namespace {

using antipode::rpc::Handlers;
using Keys = std::set<std::string>;
using Marks = std::set<Incomplete>;

constexpr char kService[] = "antipode.test.Calls";
const Marks kInDoubt{{kService, "in_doubt"}};

Keys KeysOf(const Lineage& lineage) {
  Keys keys;
  for (const WriteId& write : lineage.writes()) keys.insert(write.key);
  return keys;
}

/// A server on a port of the system's choosing.
class Serving {
 public:
  Serving(::grpc::Service& service, Handlers handlers, bool ours = true) {
    ::grpc::ServerBuilder builder;
    builder.AddListeningPort("localhost:0", ::grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service);
    if (ours) builder.experimental().SetInterceptorCreators(antipode::rpc::ServerInterceptors(handlers));
    server_ = builder.BuildAndStart();
  }
  ~Serving() { server_->Shutdown(std::chrono::system_clock::now()); }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  [[nodiscard]] std::string target() const { return "localhost:" + std::to_string(port_); }

  [[nodiscard]] std::unique_ptr<Calls::Stub> Stub(const ::grpc::ChannelArguments& arguments = {}) const {
    return Calls::NewStub(antipode::rpc::CreateChannel(target(), ::grpc::InsecureChannelCredentials(), arguments));
  }

 private:
  int port_ = 0;
  std::unique_ptr<::grpc::Server> server_;
};

Text Saying(const std::string& text) {
  Text said;
  said.set_text(text);
  return said;
}

/// Calls it, and gives the status; `*held` is what the callee's scope held.
::grpc::Status Call(Calls::Stub& stub, const std::string& text, Lineage* held = nullptr) {
  ::grpc::ClientContext context;
  Text response;
  ::grpc::Status status = stub.Unary(&context, Saying(text), &response);
  if (held != nullptr && status.ok()) *held = Lineage::Deserialize(response.text());
  return status;
}

/// A request that has written before, in a process that knows of no service yet.
class GrpcCalls : public testing::Test {
 protected:
  SettingsGuard settings_;
  ScopeGuard request_{Lineage({{"users", "before", std::uint64_t{5}, 400'000}})};
};

/// The same towards each kind of handlers.
class GrpcServers : public testing::TestWithParam<Handlers> {
 protected:
  GrpcServers()
      : serving_(GetParam() == Handlers::kSynchronous ? static_cast<::grpc::Service&>(synchronous_) : callback_,
                 GetParam()),
        stub_(serving_.Stub()) {}

  SettingsGuard settings_;
  ScopeGuard request_{Lineage({{"users", "before", std::uint64_t{5}, 400'000}})};
  Synchronous synchronous_;
  Callback callback_;
  Serving serving_;
  std::unique_ptr<Calls::Stub> stub_;
};

TEST_P(GrpcServers, HaveTheLineageAndBringBackWhatACallAdded) {
  Lineage held;
  EXPECT_TRUE(Call(*stub_, "post", &held).ok());
  EXPECT_EQ(KeysOf(held), Keys{"before"});
  EXPECT_EQ(KeysOf(Current()), (Keys{"before", "post"}));
  EXPECT_TRUE(Current().incomplete().empty());
  EXPECT_EQ(Current().open_branches(), 0U);
}

TEST_P(GrpcServers, AnswerWithErrorsToo) {
  EXPECT_EQ(Call(*stub_, kFails).error_code(), ::grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(KeysOf(Current()), (Keys{"before", kFails}));
  EXPECT_TRUE(Current().incomplete().empty());
}

TEST_P(GrpcServers, GiveEachCallAScopeOfItsOwn) {
  Lineage held;
  EXPECT_TRUE(Call(*stub_, "one").ok());
  {
    const ScopeGuard other;
    EXPECT_TRUE(Call(*stub_, "two", &held).ok());
    EXPECT_TRUE(held.empty());
    EXPECT_EQ(KeysOf(Current()), Keys{"two"});
  }
  EXPECT_EQ(KeysOf(Current()), (Keys{"before", "one"}));
}

TEST_P(GrpcServers, AreInTheScopeOfAConversationUntilItsEnd) {
  ::grpc::ClientContext context;
  const auto stream = stub_->Both(&context);
  Text response;
  for (const char* text : {"one", "two"}) {
    ASSERT_TRUE(stream->Write(Saying(text)));
    ASSERT_TRUE(stream->Read(&response));
  }
  EXPECT_EQ(KeysOf(Lineage::Deserialize(response.text())), (Keys{"before", "one"}));
  EXPECT_EQ(Serialize(), Current().Merge(Lineage(LineageParts{{}, {}, {}, 1, {}})).Serialize());
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(KeysOf(Current()), (Keys{"before", "one", "two"}));
  EXPECT_EQ(Serialize(), Current().Serialize());
}

TEST_P(GrpcServers, LeaveACancelledConversationInDoubt) {
  ::grpc::ClientContext context;
  const auto stream = stub_->Both(&context);
  Text response;
  ASSERT_TRUE(stream->Write(Saying("one")));
  ASSERT_TRUE(stream->Read(&response));
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), ::grpc::StatusCode::CANCELLED);
  EXPECT_EQ(Current().incomplete(), kInDoubt);
}

std::string NameOfHandlers(const testing::TestParamInfo<Handlers>& one) {
  return one.param == Handlers::kSynchronous ? "Synchronous" : "Callback";
}
INSTANTIATE_TEST_SUITE_P(Handlers, GrpcServers, testing::Values(Handlers::kSynchronous, Handlers::kAsynchronous),
                         NameOfHandlers);

TEST_F(GrpcCalls, ComeBackFromAHandlerThatThrows) {
  Synchronous service;
  const Serving serving(service, Handlers::kSynchronous);
  EXPECT_EQ(Call(*serving.Stub(), kThrows).error_code(), ::grpc::StatusCode::UNKNOWN);
  EXPECT_EQ(KeysOf(Current()), (Keys{"before", kThrows}));
}

TEST_F(GrpcCalls, ThatStreamEitherWayAnswerAtTheirEnd) {
  Synchronous service;
  const Serving serving(service, Handlers::kSynchronous);
  const auto stub = serving.Stub();
  Text response;
  {
    ::grpc::ClientContext context;
    const auto writer = stub->Up(&context, &response);
    writer->Write(Saying("one"));
    writer->Write(Saying("two"));
    writer->WritesDone();
    EXPECT_TRUE(writer->Finish().ok());
  }
  ::grpc::ClientContext context;
  const auto reader = stub->Down(&context, Saying("three"));
  while (reader->Read(&response)) EXPECT_EQ(KeysOf(Lineage::Deserialize(response.text())).count("two"), 1U);
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(KeysOf(Current()), (Keys{"before", "one", "two", "three", "after three"}));
}

TEST_F(GrpcCalls, ByCallbackAreMergedBeforeTheirCallback) {
  Callback service;
  const Serving serving(service, Handlers::kAsynchronous);
  const auto stub = serving.Stub();
  ::grpc::ClientContext context;
  const Text request = Saying("post");
  Text response;
  std::promise<Lineage> seen;
  stub->async()->Unary(&context, &request, &response, [&, captured = Capture()](const ::grpc::Status&) {
    const ScopeGuard guard(captured);
    seen.set_value(Current());
  });
  EXPECT_EQ(KeysOf(seen.get_future().get()), (Keys{"before", "post"}));
}

TEST_F(GrpcCalls, OfACompletionQueueCarryTheScopeInWhichTheyWereMade) {
  Callback service;
  const Serving serving(service, Handlers::kAsynchronous);
  const auto stub = serving.Stub();
  ::grpc::ClientContext context;
  ::grpc::CompletionQueue queue;
  const auto call = stub->PrepareAsyncUnary(&context, Saying("post"), &queue);
  Append({"users", "between", std::uint64_t{6}, 400'000});
  Text response;
  ::grpc::Status status;
  std::thread([&] {
    call->StartCall();
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
  }).join();
  EXPECT_EQ(KeysOf(Lineage::Deserialize(response.text())), (Keys{"before", "between"}));
  EXPECT_EQ(KeysOf(Current()), (Keys{"before", "between", "post"}));
}

/// Serves one call of a completion queue, by the two calls that are documented for that.
void ServeOne(Calls::AsyncService& service, ::grpc::ServerCompletionQueue& queue) {
  ::grpc::ServerContext context;
  Text request;
  Text response;
  ::grpc::ServerAsyncResponseWriter<Text> writer(&context);
  void* tag = nullptr;
  bool ok = false;
  service.RequestUnary(&context, &request, &writer, &queue, &queue, nullptr);
  queue.Next(&tag, &ok);
  const auto scope = antipode::rpc::Begin(context);
  {
    const ScopeGuard guard(scope);
    const ::grpc::Status status = Handle(request, response);
    antipode::rpc::Answer(context, *scope, Calls::service_full_name(), status.error_message());
    writer.Finish(response, status, nullptr);
  }
  queue.Next(&tag, &ok);
}

TEST_F(GrpcCalls, OfAServiceOnACompletionQueueTakeTwoCalls) {
  for (const bool ours : {false, true}) {
    Calls::AsyncService service;
    ::grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("localhost:0", ::grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    if (ours) {
      builder.experimental().SetInterceptorCreators(antipode::rpc::ServerInterceptors(Handlers::kAsynchronous));
    }
    const auto queue = builder.AddCompletionQueue();
    const auto server = builder.BuildAndStart();
    const auto stub = Calls::NewStub(
        antipode::rpc::CreateChannel("localhost:" + std::to_string(port), ::grpc::InsecureChannelCredentials()));
    std::thread serving([&] { ServeOne(service, *queue); });
    Lineage held;
    const std::string text = ours ? "with" : "without";
    EXPECT_TRUE(Call(*stub, text, &held).ok());
    serving.join();
    EXPECT_EQ(KeysOf(held).count("before"), 1U);
    EXPECT_EQ(KeysOf(Current()).count(text), 1U);
    server->Shutdown();
    queue->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) continue;
  }
}

TEST_F(GrpcCalls, ThatNobodyExecutedLeaveNoMark) {
  std::string target;
  {
    Callback service;  // It has no method Up.
    const Serving serving(service, Handlers::kAsynchronous);
    target = serving.target();
    ::grpc::ClientContext context;
    Text response;
    const auto stub = serving.Stub();
    const auto writer = stub->Up(&context, &response);
    EXPECT_EQ(writer->Finish().error_code(), ::grpc::StatusCode::UNIMPLEMENTED);
  }
  const auto stub = Calls::NewStub(antipode::rpc::CreateChannel(target, ::grpc::InsecureChannelCredentials()));
  EXPECT_EQ(Call(*stub, "post").error_code(), ::grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(Current().incomplete().empty());
}

TEST_F(GrpcCalls, ThatAreGivenUpAreInDoubt) {
  Synchronous service;
  const Serving serving(service, Handlers::kSynchronous);
  {
    ::grpc::ClientContext context;
    Text response;
    const auto stub = serving.Stub();
    const auto reader = stub->Down(&context, Saying("post"));
    ASSERT_TRUE(reader->Read(&response));
  }
  EXPECT_EQ(Current().incomplete(), kInDoubt);
  EXPECT_EQ(Serialize(), Current().Serialize());
}

/// The marks that a barrier finds here; it waits for nothing else.
Marks MarksOfABarrier() {
  BarrierOptions options;
  options.timeout = std::chrono::seconds(1);
  options.exclude = {"users", "posts"};
  options.raise_unmet = false;
  const BarrierResult result = Barrier(options);
  EXPECT_EQ(result.ok(), result.incomplete.empty());
  return {result.incomplete.begin(), result.incomplete.end()};
}

TEST_F(GrpcCalls, ThatAreGivenUpFailBarriersWhileTheirContextLives) {
  Synchronous service;
  const Serving serving(service, Handlers::kSynchronous);
  const auto stub = serving.Stub();
  {
    ::grpc::ClientContext context;
    Text response;
    ASSERT_TRUE(stub->Down(&context, Saying("post"))->Read(&response));
    EXPECT_EQ(MarksOfABarrier(), kInDoubt);
    EXPECT_TRUE(Current().incomplete().empty());
    const ScopeGuard other;
    EXPECT_EQ(MarksOfABarrier(), Marks());
  }
  EXPECT_EQ(Current().incomplete(), kInDoubt);
}

TEST_P(GrpcServers, LeaveBarriersInDoubtUntilAConversationEnds) {
  ::grpc::ClientContext context;
  const auto stream = stub_->Both(&context);
  Text response;
  ASSERT_TRUE(stream->Write(Saying("one")));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(MarksOfABarrier(), kInDoubt);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(MarksOfABarrier(), Marks());
}

TEST_F(GrpcCalls, GivenUpAtAServiceThatTakesNoPartLeaveBarriersAlone) {
  Synchronous service;
  const Serving serving(service, Handlers::kSynchronous, false);
  Settings stated;
  stated.peers["localhost"] = Answers::kNever;
  Configure(stated);
  const auto stub = serving.Stub();
  ::grpc::ClientContext context;
  Text response;
  ASSERT_TRUE(stub->Down(&context, Saying("post"))->Read(&response));
  EXPECT_EQ(MarksOfABarrier(), Marks());
}

TEST_F(GrpcCalls, AreInDoubtWhereAServiceThatTakesPartSucceedsWithoutAnAnswer) {
  Synchronous service;
  const Serving without(service, Handlers::kSynchronous, false);
  const auto stub = without.Stub();
  EXPECT_TRUE(Call(*stub, "post").ok());
  EXPECT_TRUE(Current().incomplete().empty());
  Settings stated;
  stated.peers["localhost"] = Answers::kAlways;
  Configure(stated);
  EXPECT_TRUE(Call(*stub, "post").ok());
  EXPECT_EQ(Current().incomplete(), kInDoubt);
}

TEST_F(GrpcCalls, ToAHostThatMayNotHaveItCarryNothing) {
  Settings elsewhere;
  elsewhere.egress_hosts = {"elsewhere.example"};
  Configure(elsewhere);
  Synchronous service;
  const Serving serving(service, Handlers::kSynchronous);
  Lineage held;
  EXPECT_TRUE(Call(*serving.Stub(), "post", &held).ok());
  EXPECT_TRUE(held.empty());
  EXPECT_EQ(KeysOf(Current()), Keys{"before"});
}

TEST_F(GrpcCalls, MergeALineageThatTheApplicationSends) {
  Synchronous service;
  const Serving serving(service, Handlers::kSynchronous);
  const auto stub = serving.Stub();
  ::grpc::ClientContext context;
  context.AddMetadata("baggage", "tenant=acme,antipode=1~kgiven.5.given");
  Text response;
  EXPECT_TRUE(stub->Unary(&context, Saying("post"), &response).ok());
  EXPECT_EQ(KeysOf(Lineage::Deserialize(response.text())), (Keys{"before", "given"}));
}

TEST_F(GrpcCalls, ThatAreSentAgainSayThatAnEarlierAttemptMayHaveWritten) {
  Synchronous service;
  const Serving serving(service, Handlers::kSynchronous);
  ::grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(R"({"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 2,
      "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
      "retryableStatusCodes": ["UNAVAILABLE"]}}]})");
  EXPECT_EQ(Call(*serving.Stub(arguments), kUnavailable).error_code(), ::grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Current().incomplete(), kInDoubt);
}

/// A lineage of about 3,600 bytes.
Lineage Large() {
  LineageParts parts;
  for (int n = 0; n < 60; ++n) {
    parts.writes.push_back({"posts", std::to_string(n) + std::string(50, 'x'), std::uint64_t{7}, 400'000});
  }
  return Lineage(parts);
}

TEST_F(GrpcCalls, AreNotRefusedBecauseOfTheirLineage) {
  Settings large;
  large.max_lineage_bytes = 4'096;
  Configure(large);
  Synchronous service;
  const Serving serving(service, Handlers::kSynchronous);
  const auto stub = serving.Stub();
  const ScopeGuard request(Large());
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{2'000}, std::size_t{5'000}, std::size_t{7'000}}) {
    ::grpc::ClientContext context;
    context.AddMetadata("other", std::string(bytes, 'x'));
    Text response;
    const ::grpc::Status status = stub->Unary(&context, Saying("post"), &response);
    ASSERT_TRUE(status.ok()) << bytes << status.error_message();
    const Lineage held = Lineage::Deserialize(response.text());
    EXPECT_EQ(held.incomplete().empty(), bytes == 0) << bytes;
  }
  EXPECT_TRUE(Current().incomplete().empty());
}

TEST_F(GrpcCalls, WhoseAnswerFindsNoRoomAreInDoubt) {
  Synchronous service;
  const Serving serving(service, Handlers::kSynchronous);
  const auto stub = serving.Stub();
  ::grpc::ClientContext context;
  context.AddMetadata("answer-bytes", "7650");
  Text response;
  EXPECT_TRUE(stub->Unary(&context, Saying("post"), &response).ok());
  EXPECT_EQ(Current().incomplete(), kInDoubt);
}

}  // namespace
}  // namespace antipode::test
