#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "antipode/export.h"
#include "antipode/propagation.h"

namespace antipode::rabbitmq {

/// The messages of one channel of a client of your own, such as AMQP-CPP: their headers, and what their confirms mean.
/// No I/O. The channel is in confirm mode, and each message that is published on it is named here first, in order.
///
///     antipode::rabbitmq::Messages messages("news");
///     const antipode::Headers headers = messages.Next("eu");     // publish with these
///     ...                                                        // basic.ack: its tag, and whether it is multiple
///     messages.Confirmed(tag, multiple);                         // the message is in the scope it was published from
///
/// Between the two its scope is in doubt; the next message of the same scope names it instead. Used by one thread at a
/// time, as the channel.
class ANTIPODE_EXPORT Messages {
 public:
  /// `by_routing_key` as in `Options`.
  explicit Messages(std::string datastore, bool by_routing_key = false);
  /// What is not confirmed is in doubt: its scopes are marked.
  ~Messages();
  Messages(Messages&& other) noexcept;
  Messages& operator=(Messages&& other) noexcept;

  /// The headers of the next message, in place of those of `given` with the same names: the current lineage and the
  /// message's own name. One to an exchange that no receipts hear has no name, and enters nothing.
  Headers Next(std::string_view routing_key, const Headers& given = {}, bool heard = true);
  /// The broker has a message, or all up to it: they enter their scopes.
  void Confirmed(std::uint64_t tag, bool multiple);
  /// A queue refused it (basic.nack); others may have it.
  void Refused(std::uint64_t tag, bool multiple);
  /// It came back, with these headers: no queue takes it. It enters nothing once it is confirmed.
  void Returned(const Headers& headers);
  /// The channel or its connection is gone: nobody knows of what is not confirmed.
  void Lost();

 private:
  class Channel;
  std::unique_ptr<Channel> channel_;
};

}  // namespace antipode::rabbitmq
