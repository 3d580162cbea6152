#include "rabbitmq/words.h"

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

bool IsRefusal(std::uint16_t code) { return code == AMQP_NOT_FOUND || code == AMQP_ACCESS_REFUSED; }

}  // namespace antipode::rabbitmq
