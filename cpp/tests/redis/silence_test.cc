// Servers of Redis that stop answering, or end: no wait lasts beyond its time, and no write kills the process.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "antipode/redis_client.h"
#include "redis/connection.h"
#include "silent_server.h"

namespace antipode::redis {
namespace {

constexpr double kTimeoutS = 0.2;

/// A context as an application opens it, without a limit of time, whose server answered one question and no more.
class Answered {
 public:
  Answered() {
    std::array<int, 2> ends{-1, -1};
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data());
    server_ = ends[1];
    context_ = redisConnectFd(ends[0]);
    const std::string info = "# Server\r\nrun_id:0123\r\n";
    const std::string answer = "$" + std::to_string(info.size()) + "\r\n" + info + "\r\n";
    if (write(server_, answer.data(), answer.size()) < 0) Hang();
  }
  ~Answered() {
    Hang();
    close(server_);
    redisFree(context_);
  }
  Answered(const Answered&) = delete;
  Answered& operator=(const Answered&) = delete;

  [[nodiscard]] redisContext* get() const { return context_; }
  /// The server ends the connection.
  void Hang() const { shutdown(server_, SHUT_RDWR); }

 private:
  int server_ = -1;
  redisContext* context_ = nullptr;
};

// A question over an application's connection ends in time although signals come.
TEST(RedisSilence, EndsAQuestionUnderSignals) {
  const Answered server;
  Connection connection(server.get(), kTimeoutS);
  EXPECT_TRUE(
      EndsUnderSignals([&] { EXPECT_THROW(connection.Ask({"INFO"}, kTimeoutS), Lost); }, [&] { server.Hang(); }));
}

// What the constructor of a client asks ends in time although signals come.
TEST(RedisSilence, EndsAClientsFirstQuestionUnderSignals) {
  const SilentServer server;
  const auto shim = Shim::Open("posts", "127.0.0.1", server.port(), [] {
    Options options;
    options.timeout = std::chrono::duration<double>(kTimeoutS);
    return options;
  }());
  redisContext* context = redisConnect("127.0.0.1", server.port());
  EXPECT_TRUE(
      EndsUnderSignals([&] { EXPECT_THROW(Client(shim, context), Error); }, [&] { shutdown(context->fd, SHUT_RDWR); }));
  redisFree(context);
  shim->Close();
}

// A batch that the server does not take ends in time.
TEST(RedisSilence, EndsABatchThatIsNotTaken) {
  const Answered server;
  Connection connection(server.get(), kTimeoutS);
  connection.Queue({"MGET", std::string(std::size_t{64} << 20, 'k')});
  EXPECT_TRUE(EndsUnderSignals([&] { EXPECT_THROW(connection.Flush(kTimeoutS), Lost); }, [&] { server.Hang(); }));
}

// An application's context blocks as before once a question was answered.
TEST(RedisSilence, LeavesAContextAsItWas) {
  const Answered server;
  const int before = fcntl(server.get()->fd, F_GETFL);
  const Connection connection(server.get(), kTimeoutS);
  EXPECT_EQ(fcntl(server.get()->fd, F_GETFL), before);
  EXPECT_NE(server.get()->flags & REDIS_BLOCK, 0);
}

// A write over a connection that another thread interrupted fails, and does not kill the process.
TEST(RedisSilence, FailsAWriteOverAnInterruptedConnection) {
  EXPECT_EXIT(
      {
        const Answered server;
        Connection connection(server.get(), kTimeoutS);
        connection.Interrupt();
        EXPECT_THROW(connection.Ask({"INFO"}, kTimeoutS), Lost);
        _exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

// A command of the application's over a connection that the server ended fails, and does not kill the process.
TEST(RedisSilence, FailsACommandOverAnEndedConnection) {
  EXPECT_EXIT(
      {
        const Answered server;
        const auto shim = Shim::Open("posts", "127.0.0.1", 1);
        Client client(shim, server.get());
        server.Hang();
        EXPECT_EQ(client.Command("SET a 1"), nullptr);
        _exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace antipode::redis
