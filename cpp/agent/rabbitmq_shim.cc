// RabbitMQ in the agent: what its shim decides, and messages, of which it keeps the last one of each routing key, as a
// consumer does that builds a table.
#include <amqp_tcp_socket.h>

#include <map>
#include <mutex>

#include "antipode/rabbitmq.h"
#include "antipode/rabbitmq_client.h"
#include "antipode/scope.h"
#include "open_shim.h"
#include "rabbitmq/channel.h"
#include "rabbitmq/headers.h"
#include "rabbitmq/ledger.h"

namespace antipode::agent {
namespace {

/// The clock of a script: it stands until the next step.
class ScriptClock final : public Clock {
 public:
  [[nodiscard]] double Now() const override { return at_s; }
  [[nodiscard]] double UnixSeconds() const override { return kStartS + at_s; }
  void Spawn(const std::shared_ptr<Stepper>&) override { throw std::logic_error("nothing runs here"); }
  double at_s = 0;

 private:
  static constexpr double kStartS = 1'800'000'000;  ///< When the process of each script begins to listen.
};

Json AtPosts(Json found) {
  found["datastore"] = "posts";
  return found;
}

Json ReceiptsSay(const Json& given) {
  constexpr double kGapAgeS = 5;
  ScriptClock clock;
  rabbitmq::Ledger ledger(kGapAgeS, clock);
  Json statuses = Json::array();
  for (const Json& step : given.at("steps")) {
    clock.at_s = step.at("at_s");
    const std::string op = step.at("op");
    if (op == "see") {
      for (const Json& version : step.at("versions")) {
        ledger.See(json::WriteOf(AtPosts({{"key", step.at("key")}, {"version", version}})));
      }
    } else if (op == "listening") {
      ledger.Listening();
    } else if (op == "fulfil") {
      ledger.Fulfil(json::PromiseOf(AtPosts(step.at("promise"))));
    } else if (op == "delivered") {
      ledger.Deliver(json::WriteOf(AtPosts(step.at("write"))), std::stoull(step.at("after").get<std::string>()));
    } else if (step.contains("promise")) {
      statuses.push_back(NameOf(ledger.Judge(json::PromiseOf(AtPosts(step.at("promise")))).status));
    } else {
      statuses.push_back(NameOf(ledger.Judge(json::WriteOf(AtPosts(step.at("write")))).status));
    }
  }
  return {{"statuses", statuses}};
}

Json MessageSays(const Json& given) {
  Headers headers;
  for (const auto& [name, value] : given.at("headers").items()) {
    headers.emplace_back(name, value.is_string() ? value.get<std::string>() : std::string(rabbitmq::kNoText));
  }
  return {{"lineage", json::Of(rabbitmq::ReceivedOf(headers, "posts").lineage())}};
}

using Connected = std::unique_ptr<amqp_connection_state_t_, decltype(&amqp_destroy_connection)>;

/// A connection of the application's, with a channel.
Connected ConnectedTo(const std::string& url) {
  const rabbitmq::Place place(url);
  Connected connection(amqp_new_connection(), amqp_destroy_connection);
  amqp_socket_open(amqp_tcp_socket_new(connection.get()), place.host.c_str(), place.port);
  amqp_login(connection.get(), place.vhost.c_str(), 0, AMQP_DEFAULT_FRAME_SIZE, 0, AMQP_SASL_METHOD_PLAIN,
             place.user.c_str(), place.password.c_str());
  amqp_channel_open(connection.get(), 1);
  amqp_get_rpc_reply(connection.get());
  return connection;
}

/// Publishes a message that fulfils a promise in a transaction of AMQP's own, and rolls that back.
void PublishAndRollBack(const std::string& url, const std::string& exchange, const std::string& key,
                        const std::string& value, const Promise& fulfils) {
  const Connected connection = ConnectedTo(url);
  amqp_tx_select(connection.get(), 1);
  const auto [name, token] = rabbitmq::FulfilmentOf(fulfils);
  amqp_table_entry_t entry{};
  entry.key = amqp_cstring_bytes(name.c_str());
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = amqp_cstring_bytes(token.c_str());
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = {1, &entry};
  amqp_basic_publish(connection.get(), 1, amqp_cstring_bytes(exchange.c_str()), amqp_cstring_bytes(key.c_str()), 0, 0,
                     &properties, amqp_cstring_bytes(value.c_str()));
  amqp_tx_rollback(connection.get(), 1);
  const auto reply = amqp_get_rpc_reply(connection.get()).reply_type;
  amqp_connection_close(connection.get(), AMQP_REPLY_SUCCESS);
  if (reply != AMQP_RESPONSE_NORMAL) throw rabbitmq::Error("the transaction was not rolled back");
}

class RabbitmqShim final : public OpenShim {
 public:
  RabbitmqShim(std::shared_ptr<rabbitmq::Shim> shim, const Json& server)
      : shim_(std::move(shim)), url_(server.at("url")), exchange_(server.at("exchange")) {}
  ~RabbitmqShim() override { shim_->Close(); }
  Store& store() override { return *shim_; }

  std::optional<Lineage> Write(const std::string& key, const std::string& value, const std::optional<Lineage>& lineage,
                               const std::optional<Promise>& fulfils) override {
    return shim_->Write(key, value, lineage, fulfils);
  }
  std::optional<Lineage> Delete(const std::string&, const std::optional<Lineage>&) override {
    throw Unsupported("a published message cannot be deleted");
  }
  Found Read(const std::string& key) override {
    const std::lock_guard guard(lock_);
    const auto keep = [this](const rabbitmq::Delivery& delivery) { last_[delivery.key] = delivery; };
    while (shim_->Receive(keep)) continue;
    const auto found = last_.find(key);
    if (found == last_.end()) return {};
    Transfer(found->second.lineage);
    return {found->second.value, found->second.lineage};
  }
  void RollBack(const std::string& key, const std::string& value, const Promise& fulfils) override {
    PublishAndRollBack(url_, exchange_, key, value, fulfils);
  }

 private:
  std::shared_ptr<rabbitmq::Shim> shim_;
  std::string url_;
  std::string exchange_;
  std::mutex lock_;
  std::map<std::string, rabbitmq::Delivery> last_;
};

std::shared_ptr<rabbitmq::Shim> Opened(const Json& given, bool listens) {
  const Json& server = given.at("server");
  rabbitmq::Options options;
  options.exchange = server.at("exchange");
  options.queue = server.at("queue");
  options.mandatory = true;
  if (server.contains("tls")) {
    const Json& tls = server.at("tls");
    options.tls = rabbitmq::Tls{tls.value("ca", ""), tls.value("cert", ""), tls.value("key", "")};
  }
  options.merge_reads = false;
  if (given.value("reads_from", "primary") == "replica") {
    options.reads_from = ReadsFrom::kReplica;
    if (listens) options.receipts.emplace();
  }
  const Json timeout_s = given.value("timeout_s", Json());
  if (!timeout_s.is_null()) options.confirm_timeout = timeout_s;
  return rabbitmq::Shim::Open(given.at("datastore"), server.at("url"), options);
}

/// Publications with a confirm by an instrumented channel, and what comes next of the queue.
class RabbitmqClient final : public OpenShim {
 public:
  explicit RabbitmqClient(const Json& given)
      : shim_(Opened(given, false)),
        connection_(ConnectedTo(given.at("server").at("url"))),
        client_(shim_, connection_.get(), 1),
        exchange_(given.at("server").at("exchange")) {}
  ~RabbitmqClient() override { shim_->Close(); }
  Store& store() override { return *shim_; }

  std::optional<Lineage> Write(const std::string& key, const std::string& value, const std::optional<Lineage>&,
                               const std::optional<Promise>&) override {
    client_.Publish(exchange_, key, true, nullptr, value);
    return std::nullopt;
  }
  std::optional<Lineage> Delete(const std::string&, const std::optional<Lineage>&) override {
    throw Unsupported("a published message cannot be deleted");
  }
  Found Read(const std::string&) override {
    const auto next = shim_->Read();
    return {next ? std::optional(next->value) : std::nullopt, std::nullopt};
  }
  void RollBack(const std::string&, const std::string&, const Promise&) override {
    throw Unsupported("a client fulfils no promises");
  }

 private:
  std::shared_ptr<rabbitmq::Shim> shim_;
  Connected connection_;
  rabbitmq::Client client_;
  std::string exchange_;
};

}  // namespace

std::unique_ptr<OpenShim> OpenRabbitmq(const Json& given) {
  return std::make_unique<RabbitmqShim>(Opened(given, true), given.at("server"));
}

std::unique_ptr<OpenShim> OpenRabbitmqClient(const Json& given) { return std::make_unique<RabbitmqClient>(given); }

Json DecideRabbitmq(const std::string& kind, const Json& given) {
  if (kind == "receipts") return ReceiptsSay(given);
  if (kind == "message") return MessageSays(given);
  throw Unsupported("C++ decides nothing of RabbitMQ that is called '" + kind + "'");
}

}  // namespace antipode::agent
