#include "rabbitmq/channel.h"

#include <amqp_tcp_socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <vector>

#include "antipode/errors.h"
#include "rabbitmq/headers.h"

namespace antipode::rabbitmq {
namespace {

constexpr amqp_channel_t kChannel = 1;
constexpr double kConnectS = 5;
constexpr int kFrameBytes = 131'072;
/// Reasons for which a broker closes a channel before it has routed anything.
constexpr std::array<std::uint16_t, 2> kRefusals{AMQP_NOT_FOUND, AMQP_ACCESS_REFUSED};
/// What was sent and is not taken for so long ends the connection: librabbitmq sets no limit to sending.
constexpr unsigned kUnsentMs = 10'000;
/// A dead connection is noticed after twice as many seconds.
constexpr int kHeartbeatS = 10;

amqp_bytes_t BytesOf(std::string_view text) {
  // The library takes pointers to what it only reads.
  return {text.size(), const_cast<char*>(text.data())};
}

std::string TextOf(const amqp_bytes_t& bytes) { return {static_cast<const char*>(bytes.bytes), bytes.len}; }

timeval TimeOf(double seconds) {
  const double whole = std::floor(seconds);
  return {static_cast<time_t>(whole), static_cast<suseconds_t>((seconds - whole) * 1e6)};
}

}  // namespace

Error::~Error() = default;

Headers HeadersOf(const amqp_basic_properties_t& properties) {
  Headers headers;
  if ((properties._flags & AMQP_BASIC_HEADERS_FLAG) == 0) return headers;
  for (int n = 0; n < properties.headers.num_entries; ++n) {
    const amqp_table_entry_t& each = properties.headers.entries[n];
    const bool is_text = each.value.kind == AMQP_FIELD_KIND_UTF8 || each.value.kind == AMQP_FIELD_KIND_BYTES;
    headers.emplace_back(TextOf(each.key), is_text ? TextOf(each.value.value.bytes) : std::string(kNoText));
  }
  return headers;
}

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

Channel::Channel(const Place& place, For purpose) : connection_(amqp_new_connection()) {
  if (connection_ == nullptr) throw std::bad_alloc();
  try {
    amqp_socket_t* socket = amqp_tcp_socket_new(connection_);
    const timeval limit = TimeOf(kConnectS);
    const int opened = amqp_socket_open_noblock(socket, place.host.c_str(), place.port, &limit);
    if (opened != AMQP_STATUS_OK) throw Error(std::string("no broker: ") + amqp_error_string2(opened));
    setsockopt(amqp_get_sockfd(connection_), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnsentMs, sizeof kUnsentMs);
    amqp_set_rpc_timeout(connection_, &limit);
    amqp_set_handshake_timeout(connection_, &limit);
    Check(amqp_login(connection_, place.vhost.c_str(), 0, kFrameBytes, purpose == For::kListening ? kHeartbeatS : 0,
                     AMQP_SASL_METHOD_PLAIN, place.user.c_str(), place.password.c_str()),
          "login");
    amqp_channel_open(connection_, kChannel);
    Check(amqp_get_rpc_reply(connection_), "channel");
    if (purpose == For::kPublishing) {
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
  if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION) Ended(reply.reply, what);
  open_ = false;
  throw Error(std::string(what) + ": " + amqp_error_string2(reply.library_error));
}

void Channel::Sent(int status, const char* what) {
  if (status == AMQP_STATUS_OK) return;
  open_ = false;
  throw Error(std::string(what) + ": " + amqp_error_string2(status));
}

/// The broker says something else than was asked: that it closes, as a rule.
void Channel::Ended(const amqp_method_t& method, const char* what) {
  open_ = false;
  const std::string start = std::string(what) + ": ";
  if (method.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const auto* close = static_cast<amqp_channel_close_t*>(method.decoded);
    throw Closed(close->reply_code, start + TextOf(close->reply_text));
  }
  if (method.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const auto* close = static_cast<amqp_connection_close_t*>(method.decoded);
    throw Closed(close->reply_code, start + TextOf(close->reply_text));
  }
  throw Error(start + "the broker says " + amqp_method_name(method.id));
}

amqp_frame_t Channel::Next(const timeval* limit) {
  amqp_frame_t frame;
  Sent(amqp_simple_wait_frame_noblock(connection_, &frame, limit), "waiting for the broker");
  return frame;
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
  Sent(amqp_basic_publish(connection_, kChannel, BytesOf(exchange), BytesOf(key), mandatory ? 1 : 0, 0, &properties,
                          BytesOf(body)),
       "publishing");
  Confirmed(timeout_s);
}

void Channel::Confirmed(double timeout_s) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(timeout_s);
  bool returned = false;
  while (true) {
    const std::chrono::duration<double> left = end - Clock::now();
    const timeval limit = TimeOf(std::max(left.count(), 0.0));
    const amqp_frame_t frame = Next(&limit);
    if (frame.frame_type != AMQP_FRAME_METHOD) continue;  // Of the message that came back.
    const amqp_method_t& method = frame.payload.method;
    if (method.id == AMQP_BASIC_ACK_METHOD) break;
    if (method.id == AMQP_BASIC_NACK_METHOD) throw Error("a queue refused the message; another may have it");
    if (method.id == AMQP_BASIC_RETURN_METHOD) {
      returned = true;
      continue;
    }
    if (method.id != AMQP_CHANNEL_CLOSE_METHOD) Ended(method, "no confirm");
    try {
      Ended(method, "no confirm");
    } catch (const Closed& closed) {
      if (std::find(kRefusals.begin(), kRefusals.end(), closed.code()) == kRefusals.end()) throw;
      throw Refused(closed.what());
    }
  }
  if (returned) throw Refused("no queue takes the message");
}

/// What follows the method of a message: its headers, and its body in pieces.
void Channel::Content(Message& message, const timeval* limit) {
  const amqp_frame_t head = Next(limit);
  if (head.frame_type == AMQP_FRAME_METHOD) Ended(head.payload.method, "a message");
  message.headers = HeadersOf(*static_cast<amqp_basic_properties_t*>(head.payload.properties.decoded));
  const std::uint64_t size = head.payload.properties.body_size;
  while (message.body.size() < size) {
    const amqp_frame_t piece = Next(limit);
    if (piece.frame_type == AMQP_FRAME_METHOD) Ended(piece.payload.method, "a message");
    message.body += TextOf(piece.payload.body_fragment);
  }
}

std::optional<Message> Channel::Get(const std::string& queue, bool acknowledged) {
  amqp_maybe_release_buffers(connection_);
  const amqp_rpc_reply_t reply = amqp_basic_get(connection_, kChannel, BytesOf(queue), acknowledged ? 1 : 0);
  Check(reply, "taking a message");
  if (reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD) return std::nullopt;
  const auto* got = static_cast<amqp_basic_get_ok_t*>(reply.reply.decoded);
  Message message;
  message.key = TextOf(got->routing_key);
  message.redelivered = got->redelivered != 0;
  message.tag = got->delivery_tag;
  const timeval limit = TimeOf(kConnectS);
  Content(message, &limit);
  return message;
}

void Channel::Acknowledge(std::uint64_t tag) {
  if (!open_) throw Error("acknowledging: the connection was lost");
  Sent(amqp_basic_ack(connection_, kChannel, tag, 0), "acknowledging");
}

void Channel::PutBack(std::uint64_t tag) {
  if (!open_) throw Error("putting back: the connection was lost");
  Sent(amqp_basic_nack(connection_, kChannel, tag, 0, 1), "putting back");
}

std::string Channel::Bind(const std::string& exchange, const std::vector<std::string>& keys, int most_queued) {
  amqp_table_entry_t most{};
  most.key = amqp_cstring_bytes("x-max-length");
  most.value.kind = AMQP_FIELD_KIND_I32;
  most.value.value.i32 = most_queued;
  const amqp_table_t arguments{1, &most};
  const auto* declared = amqp_queue_declare(connection_, kChannel, amqp_empty_bytes, 0, 0, 1, 1, arguments);
  Check(amqp_get_rpc_reply(connection_), "a queue of receipts");
  const std::string queue = TextOf(declared->queue);
  for (const std::string& key : keys) {
    amqp_queue_bind(connection_, kChannel, BytesOf(queue), BytesOf(exchange), BytesOf(key), amqp_empty_table);
    Check(amqp_get_rpc_reply(connection_), "binding to the exchange");
  }
  return queue;
}

void Channel::Consume(const std::string& queue) {
  amqp_basic_consume(connection_, kChannel, BytesOf(queue), amqp_empty_bytes, 0, 1, 1, amqp_empty_table);
  Check(amqp_get_rpc_reply(connection_), "consuming");
}

Headers Channel::Heard() {
  amqp_maybe_release_buffers(connection_);
  const amqp_frame_t frame = Next(nullptr);
  if (frame.frame_type != AMQP_FRAME_METHOD) throw Error("a message: content without its method");
  if (frame.payload.method.id != AMQP_BASIC_DELIVER_METHOD) Ended(frame.payload.method, "the queue of receipts");
  Message message;
  Content(message, nullptr);
  return message.headers;
}

void Channel::Interrupt() const { shutdown(amqp_get_sockfd(connection_), SHUT_RDWR); }

}  // namespace antipode::rabbitmq
