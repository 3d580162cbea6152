// Servers that take connections and answer nothing, and what is tried with them.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <future>
#include <thread>

namespace antipode {

/// The kernel takes connections for it; nobody ever reads them.
class SilentServer {
 public:
  SilentServer() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    listen(socket_, 16);
    socklen_t size = sizeof address;
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~SilentServer() { close(socket_); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// A socket that is connected to it, and the server's end of that.
  [[nodiscard]] int Connected() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    const int made = ::socket(AF_INET, SOCK_STREAM, 0);
    connect(made, reinterpret_cast<sockaddr*>(&address), size);
    return made;
  }
  [[nodiscard]] int Accepted() const { return accept(socket_, nullptr, nullptr); }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

/// Whether work on another thread ends by itself, however many signals that thread gets meanwhile. Where it does not
/// in good time, `release` has to end it.
inline bool EndsUnderSignals(const std::function<void()>& work, const std::function<void()>& release) {
  struct sigaction handled {};
  struct sigaction before {};
  handled.sa_handler = [](int) {};
  handled.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &handled, &before);
  std::promise<void> ended;
  auto done = ended.get_future();
  std::thread worker([&] {
    work();
    ended.set_value();
  });
  constexpr std::chrono::seconds kPatience(20);
  constexpr std::chrono::milliseconds kBetween(5);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (done.wait_for(kBetween) != std::future_status::ready && std::chrono::steady_clock::now() < end) {
    pthread_kill(worker.native_handle(), SIGUSR1);
  }
  const bool by_itself = done.wait_for(kBetween) == std::future_status::ready;
  if (!by_itself) release();
  worker.join();
  sigaction(SIGUSR1, &before, nullptr);
  return by_itself;
}

}  // namespace antipode
