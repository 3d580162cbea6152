// A socket to a broker, and how another thread ends what waits for it.
#pragma once

#include <mutex>
#include <string>

namespace antipode::rabbitmq {

/// Ends what a thread waits for at a broker: a connection that is being made, or one that stands. Thread-safe.
class Interrupter {
 public:
  /// For good: who begins to connect later fails, too.
  void Interrupt();
  /// Begins, and ends, to wait at a socket. Begin throws Error where it was interrupted.
  void Begin(int socket);
  void End();

 private:
  std::mutex lock_;
  int socket_ = -1;
  bool interrupted_ = false;
};

/// Ends a connection over which nothing is taken for long: librabbitmq sets no limit to sending.
void Tune(int socket);

/// As long as it lives, a connection of the application's ends over which nothing is taken for so many seconds.
class TakenWithin {
 public:
  TakenWithin(int socket, double seconds);
  ~TakenWithin();
  TakenWithin(const TakenWithin&) = delete;
  TakenWithin& operator=(const TakenWithin&) = delete;

 private:
  int socket_;
  unsigned before_ms_ = 0;
};

/// A socket that is connected, as librabbitmq expects it. Whoever has it ends it in `interrupter`, if any, before it is
/// closed. Throws Error where no broker answers within so many seconds, or it was interrupted.
int Connected(const std::string& host, int port, double timeout_s, Interrupter* interrupter);

}  // namespace antipode::rabbitmq
