#include "rabbitmq/channel.h"

#include <amqp_tcp_socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <vector>

#include "antipode/errors.h"

namespace antipode::rabbitmq {
namespace {

constexpr amqp_channel_t kChannel = 1;
constexpr double kConnectS = 5;
constexpr int kFrameBytes = 131'072;
/// Reasons for which a broker closes a channel before it has routed anything.
constexpr std::array<std::uint16_t, 3> kRefusals{AMQP_NOT_FOUND, AMQP_ACCESS_REFUSED, AMQP_PRECONDITION_FAILED};

amqp_bytes_t BytesOf(std::string_view text) {
  // The library takes pointers to what it only reads.
  return {text.size(), const_cast<char*>(text.data())};
}

std::string TextOf(const amqp_bytes_t& bytes) { return {static_cast<const char*>(bytes.bytes), bytes.len}; }

timeval TimeOf(double seconds) {
  const double whole = std::floor(seconds);
  return {static_cast<time_t>(whole), static_cast<suseconds_t>((seconds - whole) * 1e6)};
}

std::string Reason(const amqp_method_t& method) {
  if (method.id == AMQP_CHANNEL_CLOSE_METHOD) {
    return TextOf(static_cast<amqp_channel_close_t*>(method.decoded)->reply_text);
  }
  if (method.id == AMQP_CONNECTION_CLOSE_METHOD) {
    return TextOf(static_cast<amqp_connection_close_t*>(method.decoded)->reply_text);
  }
  return "an answer that was not expected";
}

Headers HeadersOf(const amqp_basic_properties_t& properties) {
  Headers headers;
  if ((properties._flags & AMQP_BASIC_HEADERS_FLAG) == 0) return headers;
  for (int n = 0; n < properties.headers.num_entries; ++n) {
    const amqp_table_entry_t& each = properties.headers.entries[n];
    const bool is_text = each.value.kind == AMQP_FIELD_KIND_UTF8 || each.value.kind == AMQP_FIELD_KIND_BYTES;
    // What is no text is kept as one that is unreadable.
    headers.emplace_back(TextOf(each.key), is_text ? TextOf(each.value.value.bytes) : "antipode=?");
  }
  return headers;
}

}  // namespace

Error::~Error() = default;

Place::Place(const std::string& url) {
  std::vector<char> copy(url.begin(), url.end());
  copy.push_back('\0');
  amqp_connection_info info;
  amqp_default_connection_info(&info);
  // The URL may hold a password: it is not repeated.
  if (amqp_parse_url(copy.data(), &info) != AMQP_STATUS_OK) {
    throw ConfigurationError("the broker's URL is malformed: amqp://user@host/vhost");
  }
  if (info.ssl != 0) throw ConfigurationError("brokers are reached by amqp:// alone");
  host = info.host;
  port = info.port;
  user = info.user;
  password = info.password;
  vhost = info.vhost;
}

Channel::Channel(const Place& place, bool confirms) : connection_(amqp_new_connection()) {
  if (connection_ == nullptr) throw std::bad_alloc();
  try {
    amqp_socket_t* socket = amqp_tcp_socket_new(connection_);
    const timeval limit = TimeOf(kConnectS);
    const int opened = amqp_socket_open_noblock(socket, place.host.c_str(), place.port, &limit);
    if (opened != AMQP_STATUS_OK) throw Error(std::string("no broker: ") + amqp_error_string2(opened));
    amqp_set_rpc_timeout(connection_, &limit);
    amqp_set_handshake_timeout(connection_, &limit);
    Check(amqp_login(connection_, place.vhost.c_str(), 0, kFrameBytes, 0, AMQP_SASL_METHOD_PLAIN, place.user.c_str(),
                     place.password.c_str()),
          "login");
    amqp_channel_open(connection_, kChannel);
    Check(amqp_get_rpc_reply(connection_), "channel");
    if (confirms) {
      amqp_confirm_select(connection_, kChannel);
      Check(amqp_get_rpc_reply(connection_), "confirms");
    }
    open_ = true;
  } catch (const Error&) {
    amqp_destroy_connection(connection_);
    throw;
  }
}

Channel::~Channel() {
  if (open_) amqp_connection_close(connection_, AMQP_REPLY_SUCCESS);
  amqp_destroy_connection(connection_);
}

void Channel::Check(const amqp_rpc_reply_t& reply, const char* what) {
  if (reply.reply_type == AMQP_RESPONSE_NORMAL) return;
  open_ = false;
  const std::string cause = reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION
                                ? Reason(reply.reply)
                                : std::string(amqp_error_string2(reply.library_error));
  throw Error(std::string(what) + ": " + cause);
}

bool Channel::Alive() {
  if (!open_) return false;
  amqp_maybe_release_buffers(connection_);
  const timeval now{0, 0};
  amqp_frame_t frame;
  // Between publications a broker has nothing to say but that it closes.
  open_ = amqp_simple_wait_frame_noblock(connection_, &frame, &now) == AMQP_STATUS_TIMEOUT;
  return open_;
}

void Channel::Publish(const std::string& exchange, std::string_view key, std::string_view body, const Headers& headers,
                      bool mandatory, double timeout_s) {
  std::vector<amqp_table_entry_t> entries;
  for (const auto& [name, value] : headers) {
    amqp_table_entry_t entry{};
    entry.key = BytesOf(name);
    entry.value.kind = AMQP_FIELD_KIND_UTF8;
    entry.value.value.bytes = BytesOf(value);
    entries.push_back(entry);
  }
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG;
  properties.headers = {static_cast<int>(entries.size()), entries.data()};
  properties.delivery_mode = 2;
  const int sent = amqp_basic_publish(connection_, kChannel, BytesOf(exchange), BytesOf(key), mandatory ? 1 : 0, 0,
                                      &properties, BytesOf(body));
  if (sent != AMQP_STATUS_OK) {
    open_ = false;
    throw Error(std::string("publishing: ") + amqp_error_string2(sent));
  }
  Confirmed(timeout_s);
}

void Channel::Confirmed(double timeout_s) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(timeout_s);
  bool returned = false;
  while (true) {
    const std::chrono::duration<double> left = end - Clock::now();
    const timeval limit = TimeOf(std::max(left.count(), 0.0));
    amqp_frame_t frame;
    const int got = amqp_simple_wait_frame_noblock(connection_, &frame, &limit);
    if (got != AMQP_STATUS_OK) {
      open_ = false;
      throw Error(std::string("no confirm: ") + amqp_error_string2(got));
    }
    if (frame.frame_type != AMQP_FRAME_METHOD) continue;
    const amqp_method_t& method = frame.payload.method;
    if (method.id == AMQP_BASIC_ACK_METHOD) break;
    if (method.id == AMQP_BASIC_NACK_METHOD) throw Error("a queue refused the message; another may have it");
    if (method.id == AMQP_BASIC_RETURN_METHOD) {
      amqp_message_t message;
      Check(amqp_read_message(connection_, kChannel, &message, 0), "a message that came back");
      amqp_destroy_message(&message);
      returned = true;
      continue;
    }
    open_ = false;
    if (method.id == AMQP_CHANNEL_CLOSE_METHOD) {
      const std::uint16_t code = static_cast<amqp_channel_close_t*>(method.decoded)->reply_code;
      if (std::find(kRefusals.begin(), kRefusals.end(), code) != kRefusals.end()) throw Refused(Reason(method));
    }
    throw Error(Reason(method));
  }
  if (returned) throw Refused("no queue takes the message");
}

std::optional<Message> Channel::Get(const std::string& queue) {
  amqp_maybe_release_buffers(connection_);
  const amqp_rpc_reply_t reply = amqp_basic_get(connection_, kChannel, BytesOf(queue), 1);
  Check(reply, "taking a message");
  if (reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD) return std::nullopt;
  Message message;
  message.key = TextOf(static_cast<amqp_basic_get_ok_t*>(reply.reply.decoded)->routing_key);
  amqp_message_t found;
  Check(amqp_read_message(connection_, kChannel, &found, 0), "reading a message");
  message.body = TextOf(found.body);
  message.headers = HeadersOf(found.properties);
  amqp_destroy_message(&found);
  return message;
}

}  // namespace antipode::rabbitmq
