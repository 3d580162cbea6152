// Brokers that stop answering: nothing waits for them without an end.
#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "antipode/rabbitmq_client.h"
#include "antipode/scope.h"
#include "silent_server.h"

namespace antipode::rabbitmq {
namespace {

using namespace std::string_literals;

/// A frame with a method, as it goes over the wire.
std::string Frame(char channel, const std::string& method) {
  return "\x01\x00"s + channel + "\x00\x00\x00"s + static_cast<char>(method.size()) + method + "\xce"s;
}

const std::string kSelected = Frame(1, "\x00\x55\x00\x0b"s);
/// What a broker says until a channel is in confirm mode, and its confirm of one publication.
const std::string kOpened =
    Frame(0, "\x00\x0a\x00\x0a\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05"s + "en_US") +
    Frame(0, "\x00\x0a\x00\x1e\x00\x02\x00\x02\x00\x00\x00\x00"s) + Frame(0, "\x00\x0a\x00\x29\x00"s) +
    Frame(1, "\x00\x14\x00\x0b\x00\x00\x00\x00"s) + kSelected;
const std::string kConfirmed = Frame(1, "\x00\x3c\x00\x50\x00\x00\x00\x00\x00\x00\x00\x01\x00"s);

Options Impatient() {
  Options options{"posts", "inbox"};
  options.confirm_timeout = 0.3;
  return options;
}

/// A connection of an application's, of which the broker says so much and no more.
class Application {
 public:
  explicit Application(const std::string& said) : connection_(amqp_new_connection()), socket_(server_.Connected()) {
    accepted_ = server_.Accepted();
    fcntl(socket_, F_SETFL, O_NONBLOCK);
    amqp_tcp_socket_set_sockfd(amqp_tcp_socket_new(connection_), socket_);
    if (!said.empty() && write(accepted_, said.data(), said.size()) < 0) Hang();
  }
  ~Application() {
    amqp_destroy_connection(connection_);
    Hang();
  }
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  [[nodiscard]] amqp_connection_state_t get() const { return connection_; }
  [[nodiscard]] unsigned LimitMs() const {
    unsigned limit_ms = 0;
    socklen_t size = sizeof limit_ms;
    getsockopt(socket_, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, &size);
    return limit_ms;
  }
  /// The broker ends the connection, and with it whatever waits there.
  void Hang() {
    if (accepted_ >= 0) close(std::exchange(accepted_, -1));
  }

 private:
  SilentServer server_;
  amqp_connection_state_t connection_;
  int socket_;
  int accepted_ = -1;
};

class RabbitSilence : public ::testing::Test {
 protected:
  ~RabbitSilence() override { shim_->Close(); }
  std::shared_ptr<Shim> shim_ = Shim::Open("news", "amqp://guest:guest@127.0.0.1:1", Impatient());
};

// The constructor of a client ends at a broker that does not answer, and leaves the connection its own limit.
TEST_F(RabbitSilence, EndsTheConstructorOfAClient) {
  Application application("");
  EXPECT_TRUE(
      EndsUnderSignals([&] { EXPECT_THROW(Client(shim_, application.get(), 1), Error); }, [&] { application.Hang(); }));
  EXPECT_EQ(amqp_get_rpc_timeout(application.get()), nullptr);
}

// A large publication ends at a broker that does not take it, and is in doubt.
TEST_F(RabbitSilence, EndsALargePublication) {
  Application application(kSelected);
  Client client(shim_, application.get(), 1);
  const auto scope = std::make_shared<Scope>();
  const std::string body(std::size_t{20} << 20, 'b');
  EXPECT_TRUE(EndsUnderSignals(
      [&] {
        const ScopeGuard request(scope);
        EXPECT_THROW(client.Publish("posts", "eu", false, nullptr, body), Error);
      },
      [&] { application.Hang(); }));
  EXPECT_EQ(scope->lineage().incomplete(), std::set<Incomplete>({{"news", "in_doubt"}}));
  EXPECT_EQ(application.LimitMs(), 0U) << "the connection has its own limit again";
}

// The end of a shim does not wait long for a broker that no longer answers.
TEST(RabbitClose, EndsSoonAtABrokerThatStoppedAnswering) {
  const SilentServer server;
  const auto shim = Shim::Open("news", "amqp://guest:guest@127.0.0.1:" + std::to_string(server.port()), Impatient());
  auto accepted = std::async(std::launch::async, [&] {
    const int socket = server.Accepted();
    const std::string said = kOpened + kConfirmed;
    EXPECT_EQ(write(socket, said.data(), said.size()), static_cast<ssize_t>(said.size()));
    return socket;
  });
  const auto scope = std::make_shared<Scope>();
  {
    const ScopeGuard request(scope);
    shim->Write("eu", "x");
  }
  EXPECT_EQ(scope->lineage().writes().size(), 1U);
  const auto begun = std::chrono::steady_clock::now();
  shim->Close();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(4)) << "it was 5 seconds for each channel";
  close(accepted.get());
}

}  // namespace
}  // namespace antipode::rabbitmq
