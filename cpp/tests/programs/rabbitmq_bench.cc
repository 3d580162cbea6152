// Sessions of librabbitmq: messages to a broker, and receipts at another one that its exchange feeds.
#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <thread>

#include "antipode/rabbitmq_client.h"
#include "bench.h"
#include "client_checks.h"

namespace antipode::programs {
namespace {

/// A connection with a channel.
struct Plain {
  explicit Plain(const checks::Server& server) : of(amqp_new_connection()) {
    if (amqp_socket_open(amqp_tcp_socket_new(of), server.host.c_str(), server.port) != AMQP_STATUS_OK) {
      throw std::logic_error("no broker");
    }
    amqp_login(of, "/", 0, AMQP_DEFAULT_FRAME_SIZE, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest");
    amqp_channel_open(of, 1);
    if (amqp_get_rpc_reply(of).reply_type != AMQP_RESPONSE_NORMAL) throw std::logic_error("no channel");
  }
  ~Plain() { amqp_destroy_connection(of); }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;

  amqp_connection_state_t of;
};

amqp_bytes_t Bytes(const std::string& text) { return amqp_cstring_bytes(text.c_str()); }

/// The application's connection, instrumented.
struct Connection {
  Connection(const std::shared_ptr<rabbitmq::Shim>& shim, const checks::Server& server)
      : plain(server), client(shim, plain.of, 1) {}
  Plain plain;
  rabbitmq::Client client;
};

class RabbitMqBench final : public Bench {
 public:
  /// The brokers as `host:port`, the exchange, and the queue that is bound to it by its name at both.
  explicit RabbitMqBench(const std::vector<std::string>& words)
      : near_(words.at(0).c_str()),
        far_(words.at(1).c_str()),
        exchange_(words.at(2)),
        queue_(words.at(3)),
        publisher_(Opened(near_, std::nullopt)),
        reader_(Opened(far_, rabbitmq::Receipts{})),
        at_near_(near_),
        at_far_(far_) {
    Add("publish", kOften, [this](Random&) { session_->client.Publish(exchange_, queue_, true, nullptr, Number()); });
    Add("send", kOften, [this](Random&) { session_->client.Send(exchange_, queue_, true, nullptr, Number()); });
    Add("several", 4, [this](Random& choose) { Several(choose); });
    Add("confirm", 4, [this](Random&) { session_->client.Confirm(); });
    Add("by the shim", kOften, [this](Random&) { WriteByShim(Number()); });
    Add("to nowhere", 2, [this](Random&) { ToNowhere(); });
    Add("no exchange", 1, [this](Random&) { Missing(); });
    Add("too long a key", 1, [this](Random&) { session_->client.Send(exchange_, Long(), true, nullptr, "1"); });
    Add("throws before the confirm", 3, [this](Random&) { Throws(); });
    Add("lost", 1, [this](Random&) { Lost(); });
  }
  ~RabbitMqBench() override {
    publisher_->Close();
    reader_->Close();
  }

  void Open(Random&) override { session_.emplace(publisher_, near_); }
  void Close() override { session_.reset(); }
  void Settle() override {
    try {
      session_->client.Confirm();
    } catch (const rabbitmq::Error&) {
      session_.emplace(publisher_, near_);
    }
  }
  /// How many messages were routed to the queue, once the broker has routed all that it was sent.
  std::string Committed() override {
    std::string counted = Count(at_near_);
    for (std::string before; before != counted; counted = Count(at_near_)) {
      before = counted;
      constexpr std::chrono::milliseconds kRouted(3);
      std::this_thread::sleep_for(kRouted);
    }
    return counted;
  }
  std::string Shown() override { return Count(at_far_); }
  void WriteByShim(const std::string& value) override { publisher_->Write(queue_, value); }

 private:
  std::shared_ptr<rabbitmq::Shim> Opened(const checks::Server& server,
                                         const std::optional<rabbitmq::Receipts>& receipts) const {
    rabbitmq::Options options;
    options.exchange = exchange_;
    options.mandatory = true;
    options.receipts = receipts;
    if (receipts) options.reads_from = ReadsFrom::kReplica;
    return rabbitmq::Shim::Open(kDatastore, "amqp://" + server.host + ":" + std::to_string(server.port), options);
  }
  std::string Count(const Plain& at) const {
    const auto* found = amqp_queue_declare(at.of, 1, Bytes(queue_), 1, 0, 0, 0, amqp_empty_table);
    if (found == nullptr) throw std::logic_error("no queue");
    return std::to_string(found->message_count);
  }
  static std::string Long() { return std::string(300, 'k'); }

  void Several(Random& choose) {
    for (std::size_t count = 1 + Below(choose, 4); count > 0; --count) {
      session_->client.Send(exchange_, queue_, true, nullptr, Number());
    }
    session_->client.Confirm();
  }
  void ToNowhere() {
    session_->client.Send(exchange_, "nowhere", true, nullptr, Number());
    session_->client.Confirm();
  }
  void Renewed(const std::function<void()>& act) {
    try {
      act();
    } catch (const std::runtime_error&) {
      session_.emplace(publisher_, near_);
      throw;
    }
  }
  void Missing() {
    Renewed([&] { session_->client.Publish("no.such.exchange", queue_, true, nullptr, Number()); });
  }
  void Throws() {
    Renewed([&] {
      session_->client.Send(exchange_, queue_, true, nullptr, Number());
      throw Thrown();
    });
  }
  /// The connection is gone before the confirm.
  void Lost() {
    Renewed([&] {
      session_->client.Send(exchange_, queue_, true, nullptr, Number());
      shutdown(amqp_get_sockfd(session_->plain.of), SHUT_RDWR);
      session_->client.Confirm();
    });
  }

  checks::Server near_;
  checks::Server far_;
  std::string exchange_;
  std::string queue_;
  std::shared_ptr<rabbitmq::Shim> publisher_;
  std::shared_ptr<rabbitmq::Shim> reader_;
  Plain at_near_;
  Plain at_far_;
  std::optional<Connection> session_;
};

}  // namespace

std::unique_ptr<Bench> MakeRabbitMq(const std::vector<std::string>& words) {
  return std::make_unique<RabbitMqBench>(words);
}

}  // namespace antipode::programs
