// Listening to a broker that says nothing.
#include "rabbitmq/tap.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "antipode/clock.h"

namespace antipode::rabbitmq {
namespace {

constexpr std::chrono::seconds kPrompt(1);

/// A port of this machine.
class Silent {
 public:
  explicit Silent(int backlog) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(socket_, reinterpret_cast<sockaddr*>(&address_), sizeof address_);
    listen(socket_, backlog);
    socklen_t size = sizeof address_;
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address_), &size);
  }
  ~Silent() {
    for (const int each : clients_) close(each);
    close(socket_);
  }
  Silent(const Silent&) = delete;
  Silent& operator=(const Silent&) = delete;

  [[nodiscard]] Place place() const { return Place("amqp://127.0.0.1:" + std::to_string(ntohs(address_.sin_port))); }
  /// The next client, which is about to log in.
  int Accept() {
    const int client = accept(socket_, nullptr, nullptr);
    std::array<char, 8> header{};
    EXPECT_EQ(recv(client, header.data(), header.size(), MSG_WAITALL), 8);
    return client;
  }
  void Hold(int client) { clients_.push_back(client); }
  /// Connects as often as the machine answers.
  void Fill() {
    pollfd made{-1, POLLOUT, 0};
    do {
      made.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
      clients_.push_back(made.fd);
      connect(made.fd, reinterpret_cast<sockaddr*>(&address_), sizeof address_);
    } while (poll(&made, 1, 100) == 1);
  }

 private:
  int socket_;
  sockaddr_in address_{};
  std::vector<int> clients_;
};

std::chrono::steady_clock::duration Took(const std::function<void()>& act) {
  const auto begin = std::chrono::steady_clock::now();
  act();
  return std::chrono::steady_clock::now() - begin;
}

TEST(Tap, ClosesAtOnceWhileItsBrokerIsSilent) {
  Silent broker(8);
  std::thread refuse([&] { close(broker.Accept()); });
  Tap tap(broker.place(), "news", {}, std::make_shared<Ledger>(5, SystemClock()), "news");
  refuse.join();
  broker.Hold(broker.Accept());
  EXPECT_LT(Took([&] { tap.Close(); }), kPrompt);
}

TEST(Channel, IsGivenUpAtOnceWhileNobodyAnswers) {
  Silent broker(0);
  broker.Fill();
  Interrupter interrupter;
  std::thread interrupt;
  const auto took = Took([&] {
    interrupt = std::thread([&] { interrupter.Interrupt(); });
    EXPECT_THROW(Channel(broker.place(), For::kListening, &interrupter), Error);
  });
  interrupt.join();
  EXPECT_LT(took, kPrompt);
}

}  // namespace
}  // namespace antipode::rabbitmq
