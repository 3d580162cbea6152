// A private queue that shows which publications were routed in this region.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "antipode/rabbitmq.h"
#include "rabbitmq/channel.h"
#include "rabbitmq/ledger.h"

namespace antipode::rabbitmq {

/// It listens from the creation of its shim on: what arrives before somebody waits for it must be seen, too. Connects
/// again whenever it must, on a separate thread. Thread-safe.
class Tap {
 public:
  /// Begins to listen. Throws ConfigurationError where there is no exchange to listen to.
  Tap(Place place, std::string exchange, Receipts receipts, std::shared_ptr<Ledger> ledger, std::string datastore);
  ~Tap();
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  /// Returns when the tap is bound, or the broker cannot be reached now.
  void AwaitAttempt();
  /// The same. Throws ConfigurationError where the broker refuses the user, or has no such exchange.
  void Await();

  /// To what it listens.
  [[nodiscard]] const std::string& exchange() const noexcept { return exchange_; }
  /// The name of the present queue, new with each connection; empty without one.
  [[nodiscard]] std::string Queue() const;
  /// Why nothing is heard at present; empty while it listens.
  [[nodiscard]] std::string Deaf() const;
  /// Stops to listen, and ends the thread; may be called again.
  void Close();

 private:
  void Run();
  void Listen();
  void Listening(const std::string& queue);
  void Heard(const Headers& headers);
  void Lost(const std::string& cause, bool refused);
  [[nodiscard]] bool ClosedWithin(double seconds);

  const Place place_;
  const std::string exchange_;
  const Receipts receipts_;
  const std::shared_ptr<Ledger> ledger_;
  const std::string datastore_;
  mutable std::mutex lock_;
  std::condition_variable changed_;
  bool closed_ = false;
  bool tried_ = false;
  std::optional<std::string> refused_;
  std::string queue_;
  std::string cause_ = "not connected yet";
  Interrupter interrupter_;
  std::mutex joining_;
  std::thread thread_;
};

}  // namespace antipode::rabbitmq
