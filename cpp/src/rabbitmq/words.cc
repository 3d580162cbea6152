#include "rabbitmq/words.h"

#include <algorithm>
#include <cmath>

namespace antipode::rabbitmq {

amqp_bytes_t BytesOf(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }

std::string TextIn(const amqp_bytes_t& bytes) { return {static_cast<const char*>(bytes.bytes), bytes.len}; }

timeval TimeOf(double seconds) {
  const double whole = std::floor(seconds);
  return {static_cast<time_t>(whole), static_cast<suseconds_t>((seconds - whole) * 1e6)};
}

amqp_table_entry_t EntryOf(std::string_view name, std::string_view value) {
  amqp_table_entry_t entry{};
  entry.key = BytesOf(name);
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = BytesOf(value);
  return entry;
}

std::pair<std::uint16_t, std::string> SaidAtTheEnd(const amqp_method_t& method) {
  if (method.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const auto* close = static_cast<amqp_channel_close_t*>(method.decoded);
    return {close->reply_code, TextIn(close->reply_text)};
  }
  if (method.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const auto* close = static_cast<amqp_connection_close_t*>(method.decoded);
    return {close->reply_code, TextIn(close->reply_text)};
  }
  return {0, std::string("the broker says ") + amqp_method_name(method.id)};
}

std::size_t RoomInFrame(amqp_connection_state_t connection) {
  // The frame's head and end are 8 bytes; what comes before the properties are 12.
  constexpr std::size_t kAround = 20;
  constexpr std::size_t kLeastFrame = 4'096;
  return std::max<std::size_t>(static_cast<std::size_t>(std::max(amqp_get_frame_max(connection), 0)), kLeastFrame) -
         kAround;
}

std::optional<std::size_t> SizeIn(std::string& room, const amqp_basic_properties_t& properties) {
  amqp_basic_properties_t copy = properties;
  const int size = amqp_encode_properties(AMQP_BASIC_CLASS, &copy, BytesOf(room));
  return size < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(size));
}

std::string Unpublishable(std::string_view exchange, std::string_view key) {
  constexpr std::size_t kMost = 255;
  if (exchange.size() > kMost) return "the name of the exchange has over 255 bytes";
  return key.size() > kMost ? "the routing key has over 255 bytes" : "";
}

bool IsRefusal(std::uint16_t code) { return code == AMQP_NOT_FOUND || code == AMQP_ACCESS_REFUSED; }

}  // namespace antipode::rabbitmq
