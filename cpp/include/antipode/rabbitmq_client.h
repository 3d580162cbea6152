#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "antipode/export.h"
#include "antipode/rabbitmq.h"

struct amqp_connection_state_t_;  ///< Behind the client's `amqp_connection_state_t`.

namespace antipode::rabbitmq {

/// An instrumented publisher: a channel of your own connection of librabbitmq. Messages carry the lineage of the
/// current scope in their headers and name themselves; once the broker has confirmed one it is in the scope from which
/// it was published.
///
///     antipode::rabbitmq::Client client(news, connection, 1);              // an amqp_connection_state_t of yours
///     client.Publish("geo.notifications", "eu", true, &properties, body);  // for amqp_basic_publish, with its confirm
///     for (const Post& each : posts) client.Send("geo.notifications", each.region, true, &properties, each.id);
///     client.Confirm();                                                    // one wait for all of them
///
/// What is published to another exchange than the shim's carries the lineage and enters no scope: no receipts hear it.
/// Used by one thread at a time, as the connection.
class ANTIPODE_EXPORT Client {
 public:
  /// Asks for confirms. The connection is logged in, with the channel open, on which nothing was published yet. It
  /// outlives the client, by which alone it is used from now on: what the broker sends on other channels is passed
  /// over. Throws ConfigurationError where there is none, or Error.
  Client(std::shared_ptr<Shim> shim, amqp_connection_state_t_* connection, std::uint16_t channel);
  /// What is not confirmed yet is in doubt: its scopes are marked.
  ~Client();
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;

  /// Publishes and waits for the confirm, of what was sent before, too. `properties` are null for none; their headers
  /// stay, but for a message's own name that was copied with them. Throws Error as `Confirm` does.
  void Publish(std::string_view exchange, std::string_view key, bool mandatory,
               const amqp_basic_properties_t_* properties, std::string_view body);
  /// Publishes, and leaves the confirm to the next `Confirm` or `Publish`. Until then nobody knows whether the broker
  /// has the message: what leaves the scope is marked `in_doubt`, and barriers find that mark. The next message of the
  /// scope over this channel names the message instead, for the broker takes them in order. Throws Error where it
  /// fails: where it says that nothing was sent, as for a routing key of over 255 bytes, the client goes on. A lineage
  /// that does not fit in the frame with your headers is cut to it, and marked.
  void Send(std::string_view exchange, std::string_view key, bool mandatory, const amqp_basic_properties_t_* properties,
            std::string_view body);
  /// Waits until all that was sent is confirmed, for the shim's `confirm_timeout`. Throws Error where a message came
  /// back or a queue refused it, where the broker closed the channel, or nobody knows; each message has entered its
  /// scope, or marked it, as it was with that one. After a closed channel open another one, with a new client.
  void Confirm();

 private:
  class Traffic;
  std::unique_ptr<Traffic> traffic_;
};

}  // namespace antipode::rabbitmq
