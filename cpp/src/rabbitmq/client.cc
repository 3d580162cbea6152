#include <amqp.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "antipode/clock.h"
#include "antipode/errors.h"
#include "antipode/members.h"
#include "antipode/observer.h"
#include "antipode/rabbitmq_client.h"
#include "antipode/settings.h"
#include "antipode/stored.h"
#include "rabbitmq/headers.h"
#include "rabbitmq/inside.h"
#include "rabbitmq/outgoing.h"
#include "rabbitmq/socket.h"
#include "rabbitmq/words.h"

namespace antipode::rabbitmq {
namespace {

/// Properties with headers, some of which are in place of what was given.
class Outfitted {
 public:
  Outfitted(const amqp_basic_properties_t* given, Headers ours) : ours_(std::move(ours)) {
    if (given != nullptr) of_ = *given;
    const bool has = (of_._flags & AMQP_BASIC_HEADERS_FLAG) != 0;
    for (int n = 0; has && n < of_.headers.num_entries; ++n) {
      const std::string name = TextIn(of_.headers.entries[n].key);
      if (name != kWriteHeader && name != kBaggage) entries_.push_back(of_.headers.entries[n]);
    }
    for (const auto& [name, value] : ours_) entries_.push_back(EntryOf(name, value));
    of_.headers = {static_cast<int>(entries_.size()), entries_.data()};
    if (has || !entries_.empty()) of_._flags |= AMQP_BASIC_HEADERS_FLAG;
  }
  Outfitted(const Outfitted&) = delete;
  Outfitted& operator=(const Outfitted&) = delete;
  [[nodiscard]] const amqp_basic_properties_t* get() const { return &of_; }

 private:
  Headers ours_;
  std::vector<amqp_table_entry_t> entries_;
  amqp_basic_properties_t of_{};
};

/// As long as it lives, calls over a connection of the application's wait for an answer for so many seconds at most.
class AnswerWithin {
 public:
  AnswerWithin(amqp_connection_state_t connection, double seconds) : connection_(connection) {
    if (const timeval* before = amqp_get_rpc_timeout(connection_)) before_ = *before;
    const timeval limit = TimeOf(seconds);
    amqp_set_rpc_timeout(connection_, &limit);
  }
  ~AnswerWithin() { amqp_set_rpc_timeout(connection_, before_ ? &*before_ : nullptr); }
  AnswerWithin(const AnswerWithin&) = delete;
  AnswerWithin& operator=(const AnswerWithin&) = delete;

 private:
  amqp_connection_state_t connection_;
  std::optional<timeval> before_;
};

}  // namespace

/// What goes over one channel of the application's, and what the broker says of it.
class Client::Traffic {
 public:
  Traffic(std::shared_ptr<Shim> shim, amqp_connection_state_t connection, amqp_channel_t channel)
      : shim_(std::move(shim)), connection_(connection), channel_(channel), messages_(shim_->datastore()) {
    if (connection_ == nullptr) throw ConfigurationError("a client is of a connection that is logged in");
    const AnswerWithin limit(connection_, shim_->inside().options.confirm_timeout);
    amqp_confirm_select(connection_, channel_);
    const amqp_rpc_reply_t reply = amqp_get_rpc_reply(connection_);
    frame_.resize(RoomInFrame(connection_));
    if (reply.reply_type == AMQP_RESPONSE_NORMAL) return;
    throw Error(reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION
                    ? SaidAtTheEnd(reply.reply).second
                    : std::string("confirms: ") + amqp_error_string2(reply.library_error));
  }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;
  ~Traffic() { messages_.DoubtAll(); }

  void Send(std::string_view exchange, std::string_view key, bool mandatory, const amqp_basic_properties_t* properties,
            std::string_view body) {
    if (closed_) throw Error("publishing: the channel was closed");
    RequireSendable(exchange, key, properties);
    Publication publication;
    if (!Disabled()) publication = Named(exchange, key);
    const Outfitted outfitted(properties, Disabled() ? Headers() : Carried(properties, publication));
    const TakenWithin limit(amqp_get_sockfd(connection_), shim_->inside().options.confirm_timeout);
    messages_.Sent(std::move(publication));
    const int status = amqp_basic_publish(connection_, channel_, BytesOf(exchange), BytesOf(key), mandatory ? 1 : 0, 0,
                                          Disabled() ? properties : outfitted.get(), BytesOf(body));
    if (status != AMQP_STATUS_OK) Fail(std::string("publishing: ") + amqp_error_string2(status));
  }

  void Confirm() {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(shim_->inside().options.confirm_timeout));
    failure_.clear();
    while (messages_.size() > 0) {
      const std::chrono::duration<double> left = end - Clock::now();
      const timeval limit = TimeOf(std::max(left.count(), 0.0));
      amqp_frame_t frame;
      amqp_maybe_release_buffers(connection_);
      const int status = amqp_simple_wait_frame_noblock(connection_, &frame, &limit);
      if (status == AMQP_STATUS_TIMEOUT) {
        messages_.DoubtAll();
        throw Error("no confirm in time: the message is in doubt");
      }
      if (status != AMQP_STATUS_OK) Fail(std::string("no confirm: ") + amqp_error_string2(status));
      Take(frame);
    }
    if (!failure_.empty()) throw Error(std::exchange(failure_, {}));
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Throws Error for what the broker would never see, which librabbitmq says when a part of it is sent.
  void RequireSendable(std::string_view exchange, std::string_view key, const amqp_basic_properties_t* properties) {
    std::string why = Unpublishable(exchange, key);
    if (why.empty() && properties != nullptr && !SizeIn(frame_, *properties)) {
      why = "the properties do not fit in a frame of the connection, or one of their texts has over 255 bytes";
    }
    if (!why.empty()) throw Error("publishing: " + why + ": nothing was sent");
  }

  /// Our headers of a message, as far as its frame has room for them and those of the application: the lineage is cut.
  Headers Carried(const amqp_basic_properties_t* properties, Publication& publication) {
    const Headers given = properties == nullptr ? Headers() : HeadersOf(*properties);
    Headers ours = Outgoing(given, publication.write, shim_->datastore());
    if (Size(properties, ours)) return ours;
    const auto baggage = ValuesOf(ours, kBaggage);
    const auto texts = Members(baggage);
    const std::string all(baggage.empty() ? "" : baggage.front());
    const std::string others = WithoutMember(all).value_or(all);
    if (!texts.empty()) {
      ours.back().second = WithMember(others, "");
      const std::size_t used = Size(properties, ours).value_or(frame_.size());
      ours.back().second = WithMember(others, Cut(texts.front(), frame_.size() - used));
      if (!Members({ours.back().second}).front().empty() && Size(properties, ours)) return ours;
    }
    NothingFits(publication);
    return others.empty() ? Headers() : Headers{{std::string(kBaggage), others}};
  }

  /// How many bytes the properties of a message take; none where they do not fit in a frame.
  std::optional<std::size_t> Size(const amqp_basic_properties_t* properties, const Headers& ours) {
    return SizeIn(frame_, *Outfitted(properties, ours).get());
  }

  /// A text of a lineage within so many bytes, marked; empty where not even its mark fits.
  static std::string Cut(const std::string& text, std::size_t room) {
    constexpr std::size_t kMemberBytes = 9;
    constexpr std::size_t kLeast = 16;
    const auto lineage = Lineage::TryDeserialize(text);
    if (!lineage || room < kLeast) return "";
    return lineage->Serialize(Bound{room + kMemberBytes, CurrentSettings().egress});
  }

  /// The message goes as the application gave it: who consumes it knows neither what it depends on, nor its name.
  void NothingFits(Publication& publication) {
    const std::string& datastore = shim_->datastore();
    Count("baggage_dropped", datastore);
    WarnOnce(
        "baggage_dropped", datastore, "frame",
        "the headers of a message to '" + datastore +
            "' fill its frame: it was sent without its lineage and its name. Use larger frames, or shorter headers");
    messages_.Unname(publication);
  }

  /// The next publication of the current scope, with its name where receipts can hear it.
  Publication Named(std::string_view exchange, std::string_view key) {
    const Options& options = shim_->inside().options;
    if (exchange != options.exchange) {
      Count("unheard_publish", shim_->datastore());
      return messages_.Unheard();
    }
    return messages_.Named(options.by_routing_key || exchange.empty() ? std::string(key) : "");
  }

  void Take(const amqp_frame_t& frame) {
    if (frame.frame_type == AMQP_FRAME_HEADER && frame.channel == channel_ && returning_) return Returned(frame);
    if (frame.frame_type != AMQP_FRAME_METHOD) return;
    const amqp_method_t& method = frame.payload.method;
    if (method.id == AMQP_CONNECTION_CLOSE_METHOD) Fail(SaidAtTheEnd(method).second);
    if (method.id == AMQP_BASIC_DELIVER_METHOD) Undelivered();
    if (frame.channel != channel_) return;
    if (method.id == AMQP_CHANNEL_CLOSE_METHOD) Closed(method);
    if (method.id == AMQP_BASIC_RETURN_METHOD) returning_ = true;
    if (method.id == AMQP_BASIC_ACK_METHOD) {
      const auto* ack = static_cast<amqp_basic_ack_t*>(method.decoded);
      Settle(ack->delivery_tag, ack->multiple != 0, true);
    }
    if (method.id == AMQP_BASIC_NACK_METHOD) {
      const auto* nack = static_cast<amqp_basic_nack_t*>(method.decoded);
      Settle(nack->delivery_tag, nack->multiple != 0, false);
    }
  }

  /// A consumer of the application's does not get what arrives while this client waits for confirms.
  void Undelivered() const {
    WarnOnce("undelivered", shim_->datastore(), "",
             "a message arrived for a consumer on the connection of a publishing client of '" + shim_->datastore() +
                 "', which passes over it: nobody gets it before the connection ends. Consume on another connection");
  }

  /// A message came back; the broker acknowledges it all the same.
  void Returned(const amqp_frame_t& frame) {
    returning_ = false;
    messages_.Returned(HeadersOf(*static_cast<amqp_basic_properties_t*>(frame.payload.properties.decoded)));
  }

  void Settle(std::uint64_t tag, bool multiple, bool taken) {
    const std::string why = messages_.Settle(tag, multiple, taken);
    if (failure_.empty()) failure_ = why;
  }

  /// The broker closed the channel. It names what it has refused where that is all that waits.
  [[noreturn]] void Closed(const amqp_method_t& method) {
    const auto [code, text] = SaidAtTheEnd(method);
    amqp_channel_close_ok_t ok{};
    amqp_send_method(connection_, channel_, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
    if (IsRefusal(code) && messages_.size() == 1) messages_.RefuseAll();
    Fail(text);
  }

  [[noreturn]] void Fail(const std::string& why) {
    closed_ = true;
    messages_.DoubtAll();
    throw Error(why);
  }

  std::shared_ptr<Shim> shim_;
  amqp_connection_state_t connection_;
  amqp_channel_t channel_;
  std::string frame_;  ///< What properties are written to, to know their size.
  OutgoingMessages messages_;
  bool returning_ = false;  ///< The headers of a message that came back are next.
  bool closed_ = false;
  std::string failure_;  ///< The first of what was confirmed since it was thrown last.
};

Client::Client(std::shared_ptr<Shim> shim, amqp_connection_state_t_* connection, std::uint16_t channel)
    : traffic_(std::make_unique<Traffic>(std::move(shim), connection, channel)) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

void Client::Publish(std::string_view exchange, std::string_view key, bool mandatory,
                     const amqp_basic_properties_t_* properties, std::string_view body) {
  traffic_->Send(exchange, key, mandatory, properties, body);
  traffic_->Confirm();
}
void Client::Send(std::string_view exchange, std::string_view key, bool mandatory,
                  const amqp_basic_properties_t_* properties, std::string_view body) {
  traffic_->Send(exchange, key, mandatory, properties, body);
}
void Client::Confirm() { traffic_->Confirm(); }

}  // namespace antipode::rabbitmq
