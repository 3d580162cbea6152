// A connection with one channel, by RAII: what librabbitmq answers, as values and exceptions.
#pragma once

#include <amqp.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/propagation.h"
#include "antipode/rabbitmq.h"
#include "rabbitmq/socket.h"

namespace antipode::rabbitmq {

/// The broker certainly has no message of what was published: nobody took it, or there is no such exchange.
class Refused : public Error {
 public:
  using Error::Error;
};

/// The broker closed the channel, or the connection, and said why.
class Closed : public Error {
 public:
  Closed(std::uint16_t code, const std::string& what) : Error(what), code_(code) {}
  [[nodiscard]] std::uint16_t code() const noexcept { return code_; }

 private:
  std::uint16_t code_;
};

/// Where a broker is, and as whom one connects.
struct Place {
  explicit Place(const std::string& url, std::optional<Tls> encrypted = {});  ///< Throws ConfigurationError.
  std::string host;
  int port;
  std::string user;
  std::string password;
  std::string vhost;
  std::optional<Tls> tls;
};

/// A message as it came.
struct Message {
  std::string key;
  std::string body;
  Headers headers;
  bool redelivered = false;
  std::uint64_t tag = 0;  ///< By which it is acknowledged.
};

/// What a channel is for.
enum class For {
  kPublishing,  ///< With confirms.
  kTaking,
  kListening,  ///< With heartbeats, which somebody must wait for.
};

/// Used by one thread at a time. Any error but a refusal by a return, or before it is sent, ends it.
class Channel {
 public:
  /// Connects. Throws Error where that fails, Closed where the broker refuses it; then nothing was sent. `interrupter`,
  /// which outlives it, makes fail soon whatever waits at the broker.
  Channel(const Place& place, For purpose, Interrupter* interrupter = nullptr);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Whether it still stands, as far as was heard.
  [[nodiscard]] bool Alive();
  /// Publishes, and waits for the confirm. Throws Refused, or Error where the broker may have it.
  void Publish(const std::string& exchange, std::string_view key, std::string_view body, const Headers& headers,
               bool mandatory, double timeout_s);
  /// The next message of a queue. Throws Error.
  std::optional<Message> Get(const std::string& queue, bool acknowledged);
  /// A message was handled; or it was not, and is to be delivered again. Throws Error where that cannot be said: the
  /// broker delivers it again.
  void Acknowledge(std::uint64_t tag);
  void PutBack(std::uint64_t tag);

  /// Declares a private queue of at most so many messages, and binds it by these keys; its name. Throws Error.
  std::string Bind(const std::string& exchange, const std::vector<std::string>& keys, int most_queued);
  /// Lets messages of a queue come, acknowledged; and the headers of the next one, however long that takes.
  void Consume(const std::string& queue);
  Headers Heard();

 private:
  [[nodiscard]] amqp_frame_t Next(const timeval* limit);
  void Confirmed(double timeout_s);
  void Content(Message& message, const timeval* limit);
  void Check(const amqp_rpc_reply_t& reply, const char* what);
  void Sent(int status, const char* what);
  [[noreturn]] void Ended(const amqp_method_t& method, const char* what);

  void Open(const Place& place, For purpose);
  void Connect(const Place& place);
  void ConnectEncrypted(const Place& place);
  void Destroy();

  amqp_connection_state_t connection_;
  Interrupter* interrupter_;
  bool open_ = false;
};

}  // namespace antipode::rabbitmq
