#include "rabbitmq/channel.h"

#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "antipode/errors.h"
#include "rabbitmq/headers.h"
#include "rabbitmq/words.h"

namespace antipode::rabbitmq {
namespace {

constexpr amqp_channel_t kChannel = 1;
constexpr double kConnectS = 5;
/// How long a broker that does not answer may keep a connection from ending.
constexpr double kCloseS = 0.25;
constexpr int kFrameBytes = 131'072;
/// A dead connection is noticed after twice as many seconds.
constexpr int kHeartbeatS = 10;

}  // namespace

Error::~Error() = default;

Headers HeadersOf(const amqp_basic_properties_t& properties) {
  Headers headers;
  if ((properties._flags & AMQP_BASIC_HEADERS_FLAG) == 0) return headers;
  for (int n = 0; n < properties.headers.num_entries; ++n) {
    const amqp_table_entry_t& each = properties.headers.entries[n];
    const bool is_text = each.value.kind == AMQP_FIELD_KIND_UTF8 || each.value.kind == AMQP_FIELD_KIND_BYTES;
    headers.emplace_back(TextIn(each.key), is_text ? TextIn(each.value.value.bytes) : std::string(kNoText));
  }
  return headers;
}

Place::Place(const std::string& url, std::optional<Tls> encrypted) : tls(std::move(encrypted)) {
  std::vector<char> copy(url.begin(), url.end());
  copy.push_back('\0');
  amqp_connection_info info;
  amqp_default_connection_info(&info);
  // The URL may hold a password: it is not repeated.
  if (amqp_parse_url(copy.data(), &info) != AMQP_STATUS_OK) {
    throw ConfigurationError("the broker's URL is malformed: amqp://user@host/vhost");
  }
  if ((info.ssl != 0) != tls.has_value()) {
    throw ConfigurationError("a broker at amqps:// needs the certificates of its options (tls), and no other does");
  }
  if (tls && tls->verify && tls->ca.empty()) {
    throw ConfigurationError("name the certificates to trust (ca), or do not verify");
  }
  if (tls && tls->cert.empty() != tls->key.empty()) {
    throw ConfigurationError("a certificate needs its key, and a key it");
  }
  host = info.host;
  port = info.port;
  user = info.user;
  password = info.password;
  vhost = info.vhost;
}

Channel::Channel(const Place& place, For purpose, Interrupter* interrupter)
    : connection_(amqp_new_connection()), interrupter_(interrupter) {
  if (connection_ == nullptr) throw std::bad_alloc();
  try {
    Open(place, purpose);
  } catch (const Error&) {
    Destroy();
    throw;
  }
}

Channel::~Channel() {
  if (open_) {
    const timeval limit = TimeOf(kCloseS);
    amqp_set_rpc_timeout(connection_, &limit);
    amqp_connection_close(connection_, AMQP_REPLY_SUCCESS);
  }
  Destroy();
}

void Channel::Destroy() {
  if (interrupter_ != nullptr) interrupter_->End();
  amqp_destroy_connection(connection_);
}

void Channel::Connect(const Place& place) {
  amqp_socket_t* socket = amqp_tcp_socket_new(connection_);
  if (socket == nullptr) throw Error("no memory for a connection");
  amqp_tcp_socket_set_sockfd(socket, Connected(place.host, place.port, kConnectS, interrupter_));
}

/// The library takes no socket for that: the connection cannot be interrupted before it stands.
void Channel::ConnectEncrypted(const Place& place) {
  amqp_socket_t* socket = amqp_ssl_socket_new(connection_);
  if (socket == nullptr) throw Error("no memory for a connection");
  const Tls& tls = *place.tls;
  amqp_ssl_socket_set_verify_peer(socket, tls.verify ? 1 : 0);
  amqp_ssl_socket_set_verify_hostname(socket, tls.verify ? 1 : 0);
  if (!tls.ca.empty()) Sent(amqp_ssl_socket_set_cacert(socket, tls.ca.c_str()), "trusted certificates");
  if (!tls.cert.empty()) Sent(amqp_ssl_socket_set_key(socket, tls.cert.c_str(), tls.key.c_str()), "certificate");
  const timeval limit = TimeOf(kConnectS);
  Sent(amqp_socket_open_noblock(socket, place.host.c_str(), place.port, &limit), "no broker");
  const int connected = amqp_get_sockfd(connection_);
  Tune(connected);
  if (interrupter_ != nullptr) interrupter_->Begin(connected);
}

void Channel::Open(const Place& place, For purpose) {
  if (place.tls) {
    ConnectEncrypted(place);
  } else {
    Connect(place);
  }
  const timeval limit = TimeOf(kConnectS);
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
  const auto [code, said] = SaidAtTheEnd(method);
  const std::string message = std::string(what) + ": " + said;
  if (code != 0) throw Closed(code, message);
  throw Error(message);
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
  if (const std::string why = Unpublishable(exchange, key); !why.empty()) {
    throw Refused("publishing: " + why + ": nothing was sent");
  }
  std::vector<amqp_table_entry_t> entries;
  for (const auto& [name, value] : headers) entries.push_back(EntryOf(name, value));
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
      if (!IsRefusal(closed.code())) throw;
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
    message.body += TextIn(piece.payload.body_fragment);
  }
}

std::optional<Message> Channel::Get(const std::string& queue, bool acknowledged) {
  amqp_maybe_release_buffers(connection_);
  const amqp_rpc_reply_t reply = amqp_basic_get(connection_, kChannel, BytesOf(queue), acknowledged ? 1 : 0);
  Check(reply, "taking a message");
  if (reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD) return std::nullopt;
  const auto* got = static_cast<amqp_basic_get_ok_t*>(reply.reply.decoded);
  Message message;
  message.key = TextIn(got->routing_key);
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
  const std::string queue = TextIn(declared->queue);
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

}  // namespace antipode::rabbitmq
