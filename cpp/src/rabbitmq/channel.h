// A connection with one channel, by RAII: what librabbitmq answers, as values and exceptions.
#pragma once

#include <amqp.h>

#include <optional>
#include <string>
#include <string_view>

#include "antipode/propagation.h"
#include "antipode/rabbitmq.h"

namespace antipode::rabbitmq {

/// The broker certainly has no message of what was published: nobody took it, or there is no such exchange.
class Refused : public Error {
 public:
  using Error::Error;
};

/// Where a broker is, and as whom one connects.
struct Place {
  explicit Place(const std::string& url);  ///< Throws ConfigurationError.
  std::string host;
  int port;
  std::string user;
  std::string password;
  std::string vhost;
};

/// A message as it came.
struct Message {
  std::string key;
  std::string body;
  Headers headers;  ///< Those that are texts.
};

/// Used by one thread at a time. Any error but Refused by a return ends it.
class Channel {
 public:
  /// Connects, with confirms. Throws Error where that fails; then nothing was sent.
  Channel(const Place& place, bool confirms);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Whether it still stands, as far as was heard.
  [[nodiscard]] bool Alive();
  /// Publishes, and waits for the confirm. Throws Refused, or Error where the broker may have it.
  void Publish(const std::string& exchange, std::string_view key, std::string_view body, const Headers& headers,
               bool mandatory, double timeout_s);
  /// The next message of a queue, acknowledged. Throws Error.
  std::optional<Message> Get(const std::string& queue);

 private:
  void Confirmed(double timeout_s);
  void Check(const amqp_rpc_reply_t& reply, const char* what);

  amqp_connection_state_t connection_;
  bool open_ = false;
};

}  // namespace antipode::rabbitmq
