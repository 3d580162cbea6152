#include "rabbitmq/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "antipode/clock.h"
#include "antipode/rabbitmq.h"
#include "antipode/sockets.h"

namespace antipode::rabbitmq {
namespace {

/// What was sent and is not taken for so long ends the connection.
constexpr unsigned kUnsentMs = 10'000;

std::unique_ptr<addrinfo, void (*)(addrinfo*)> AddressesOf(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) throw Error(std::string("no broker: ") + gai_strerror(failed));
  return {found, freeaddrinfo};
}

/// Waits for a connection that is being made; 0, or why there is none.
int Await(int socket, double deadline_s) {
  const int made = AwaitSocket(socket, POLLOUT, deadline_s);
  if (made == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return error;
  return (made & (POLLERR | POLLHUP)) != 0 ? ECONNABORTED : 0;
}

}  // namespace

void Tune(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnsentMs, sizeof kUnsentMs);
}

TakenWithin::TakenWithin(int socket, double seconds) : socket_(socket) {
  const auto limit_ms = static_cast<unsigned>(std::max(seconds * 1'000, 1.0));
  socklen_t size = sizeof before_ms_;
  getsockopt(socket_, IPPROTO_TCP, TCP_USER_TIMEOUT, &before_ms_, &size);
  setsockopt(socket_, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms);
}

TakenWithin::~TakenWithin() { setsockopt(socket_, IPPROTO_TCP, TCP_USER_TIMEOUT, &before_ms_, sizeof before_ms_); }

void Interrupter::Interrupt() {
  const std::lock_guard guard(lock_);
  interrupted_ = true;
  if (socket_ >= 0) shutdown(socket_, SHUT_RDWR);
}

void Interrupter::Begin(int socket) {
  const std::lock_guard guard(lock_);
  if (interrupted_) throw Error("closed");
  socket_ = socket;
}

void Interrupter::End() {
  const std::lock_guard guard(lock_);
  socket_ = -1;
}

int Connected(const std::string& host, int port, double timeout_s, Interrupter* interrupter) {
  const double deadline_s = SystemClock().Now() + timeout_s;
  const auto addresses = AddressesOf(host, port);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    const int made = socket(each->ai_family, each->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, each->ai_protocol);
    if (made < 0) {
      error = errno;
      continue;
    }
    try {
      if (interrupter != nullptr) interrupter->Begin(made);
    } catch (const Error&) {
      close(made);
      throw;
    }
    error = connect(made, each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) error = Await(made, deadline_s);
    if (error == 0) {
      Tune(made);
      return made;
    }
    if (interrupter != nullptr) interrupter->End();
    close(made);
  }
  throw Error(std::string("no broker: ") + std::generic_category().message(error));
}

}  // namespace antipode::rabbitmq
