// What librabbitmq takes and answers, as values of the library's.
#pragma once

#include <amqp.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace antipode::rabbitmq {

/// The library takes pointers to what it only reads.
amqp_bytes_t BytesOf(std::string_view text);
std::string TextIn(const amqp_bytes_t& bytes);
timeval TimeOf(double seconds);
/// A header, of texts that outlive it.
amqp_table_entry_t EntryOf(std::string_view name, std::string_view value);
/// With what code and words a broker ends a channel or a connection; code 0 where it says something else.
std::pair<std::uint16_t, std::string> SaidAtTheEnd(const amqp_method_t& method);
/// How many bytes of properties a frame of the connection takes.
std::size_t RoomInFrame(amqp_connection_state_t connection);
/// How many bytes properties take, which are written to `room`; none where they, or one of their texts, are too long.
std::optional<std::size_t> SizeIn(std::string& room, const amqp_basic_properties_t& properties);
/// Why nothing can be published to an exchange by a routing key; empty where it can.
std::string Unpublishable(std::string_view exchange, std::string_view key);
/// Whether a broker closes a channel with this code before it has routed anything.
bool IsRefusal(std::uint16_t code);

}  // namespace antipode::rabbitmq
