// The connections to Redis, MongoDB and RabbitMQ, with the library around each where it is built in.
#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <hiredis/hiredis.h>
#include <mongoc/mongoc.h>
#include <sys/time.h>

#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "service.h"

#ifdef ANTIPODE
#include "antipode/mongodb_client.h"
#include "antipode/rabbitmq_client.h"
#include "antipode/redis_client.h"
#include "antipode/scope.h"
#include "hops.h"
#elif defined(OPENTELEMETRY)
#include "propagation.h"
#endif

namespace social_graph {
namespace {

constexpr timeval kTimeout{5, 0};
constexpr std::chrono::milliseconds kAgain{100};
/// How late a broker is told at most that a message was handled by another thread: there is room for more meanwhile.
constexpr suseconds_t kTellMicros = 20'000;

/// What is borrowed by one thread at a time, and made when all that there are, are in use.
template <typename Thing>
class Pool {
 public:
  /// Whatever `use` throws, it does not use that thing again.
  template <typename Make, typename Use>
  auto With(Make make, Use use) {
    std::unique_ptr<Thing> thing;
    {
      const std::lock_guard guard(lock_);
      if (!idle_.empty()) {
        thing = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (thing == nullptr) thing = make();
    auto result = use(*thing);
    const std::lock_guard guard(lock_);
    idle_.push_back(std::move(thing));
    return result;
  }

 private:
  std::mutex lock_;
  std::vector<std::unique_ptr<Thing>> idle_;
};

std::pair<std::string, int> Split(const std::string& address) {
  const auto colon = address.rfind(':');
  return {address.substr(0, colon), std::stoi(address.substr(colon + 1))};
}

}  // namespace

// Redis

namespace {

Reply Taken(const redisReply* reply, const std::string& what) {
  if (reply == nullptr) throw std::runtime_error(what + ": the connection failed");
  if (reply->type == REDIS_REPLY_ERROR) throw std::runtime_error(what + ": " + std::string(reply->str, reply->len));
  Reply taken;
  taken.number = reply->integer;
  if (reply->str != nullptr) taken.text.assign(reply->str, reply->len);
  for (std::size_t index = 0; index < reply->elements; ++index) {
    const redisReply* item = reply->element[index];
    taken.items.emplace_back(item->str == nullptr ? "" : item->str, item->str == nullptr ? 0 : item->len);
  }
  return taken;
}

struct RedisConnection {
  explicit RedisConnection(redisContext* connected) : context(connected) {}
  ~RedisConnection() { redisFree(context); }
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  redisContext* context;
};

}  // namespace

struct Redis::Connections {
  std::string datastore;
  std::string host;
  int port = 0;
#ifdef ANTIPODE
  std::shared_ptr<antipode::redis::Shim> shim;
  struct Connection : RedisConnection {
    Connection(const std::shared_ptr<antipode::redis::Shim>& shim, redisContext* connected)
        : RedisConnection(connected), client(shim, connected) {}
    void Append(const std::vector<std::string_view>& words) { client.AppendCommandArgv(words); }
    antipode::redis::OwnedReply Get() { return client.GetReply(); }
    antipode::redis::Client client;
  };
  std::unique_ptr<Connection> Made(redisContext* connected) { return std::make_unique<Connection>(shim, connected); }
#else
  struct ReplyDeleter {
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };
  struct Connection : RedisConnection {
    using RedisConnection::RedisConnection;
    void Append(const std::vector<std::string_view>& words) {
      std::vector<const char*> texts;
      std::vector<std::size_t> lengths;
      for (const auto word : words) {
        texts.push_back(word.data());
        lengths.push_back(word.size());
      }
      redisAppendCommandArgv(context, static_cast<int>(words.size()), texts.data(), lengths.data());
    }
    std::unique_ptr<redisReply, ReplyDeleter> Get() {
      void* reply = nullptr;
      redisGetReply(context, &reply);
      return std::unique_ptr<redisReply, ReplyDeleter>(static_cast<redisReply*>(reply));
    }
  };
  static std::unique_ptr<Connection> Made(redisContext* connected) { return std::make_unique<Connection>(connected); }
#endif

  std::unique_ptr<Connection> Connect() {
    redisContext* context = redisConnectWithTimeout(host.c_str(), port, kTimeout);
    if (context == nullptr || context->err != 0) {
      if (context != nullptr) redisFree(context);
      throw std::runtime_error(datastore + ": cannot connect");
    }
    redisSetTimeout(context, kTimeout);
    return Made(context);
  }

  Pool<Connection> pool;
};

Redis::Redis(std::string datastore, const std::string& address, Member member)
    : connections_(std::make_unique<Connections>()) {
  connections_->datastore = std::move(datastore);
  std::tie(connections_->host, connections_->port) = Split(address);
#ifdef ANTIPODE
  antipode::redis::Options options;
  options.reads_from = member == Member::kReplica ? antipode::ReadsFrom::kReplica : antipode::ReadsFrom::kPrimary;
  connections_->shim = antipode::redis::Shim::Open(connections_->datastore, connections_->host,
                                                   static_cast<std::uint16_t>(connections_->port), options);
#else
  (void)member;
#endif
}

Redis::~Redis() = default;

Reply Redis::Do(const Words& command) { return Pipeline({command}).front(); }

std::vector<Reply> Redis::Pipeline(const std::vector<Words>& commands) {
  if (commands.empty()) return {};
  return connections_->pool.With([this] { return connections_->Connect(); },
                                 [&](Connections::Connection& connection) {
                                   for (const Words& words : commands) connection.Append({words.begin(), words.end()});
                                   std::vector<Reply> replies;
                                   for (const Words& words : commands) {
                                     const auto reply = connection.Get();
                                     replies.push_back(Taken(reply.get(), connections_->datastore + " " + words[0]));
                                   }
                                   return replies;
                                 });
}

// MongoDB

struct Mongo::Clients {
  explicit Clients(const std::string& text) : uri(mongoc_uri_new(text.c_str())), pool(mongoc_client_pool_new(uri)) {}
  ~Clients() {
#ifdef ANTIPODE
    client.reset();
#endif
    mongoc_client_pool_destroy(pool);
    mongoc_uri_destroy(uri);
  }
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  mongoc_uri_t* uri;
  mongoc_client_pool_t* pool;
#ifdef ANTIPODE
  std::optional<antipode::mongodb::Client> client;
#endif
};

Mongo::Mongo(const std::string& datastore, const std::string& address, Member member) {
  mongoc_init();
  // What is less than a warning it prints where `Process::Say` does.
  mongoc_log_set_handler([](mongoc_log_level_t, const char* domain, const char* message,
                            void*) { std::cerr << domain << ": " << message << std::endl; },
                         nullptr);
  // Acknowledged is stored: by the primary, which alone is the majority of its set.
  const std::string uri = "mongodb://" + address +
                          "/?directConnection=true&w=majority&journal=true&readPreference=primaryPreferred"
                          "&serverSelectionTimeoutMS=5000&socketTimeoutMS=5000&maxPoolSize=64";
  clients_ = std::make_unique<Clients>(uri);
  mongoc_client_pool_set_error_api(clients_->pool, MONGOC_ERROR_API_VERSION_2);
#ifdef ANTIPODE
  antipode::mongodb::Options options;
  options.database = "post";
  options.collection = "post";
  options.reads_from = member == Member::kSecondary ? antipode::ReadsFrom::kReplica : antipode::ReadsFrom::kPrimary;
  clients_->client.emplace(antipode::mongodb::Shim::Open(datastore, uri, options), clients_->pool);
#else
  (void)datastore;
  (void)member;
#endif
}

Mongo::~Mongo() = default;

void Mongo::Run(const std::function<void(_mongoc_collection_t*)>& calls) {
  const std::unique_ptr<mongoc_client_t, std::function<void(mongoc_client_t*)>> client(
      mongoc_client_pool_pop(clients_->pool),
      [this](mongoc_client_t* popped) { mongoc_client_pool_push(clients_->pool, popped); });
  const std::unique_ptr<mongoc_collection_t, decltype(&mongoc_collection_destroy)> posts(
      mongoc_client_get_collection(client.get(), "post", "post"), mongoc_collection_destroy);
#ifdef ANTIPODE
  clients_->client->Call([&] { calls(posts.get()); });
#else
  calls(posts.get());
#endif
}

// RabbitMQ

namespace {

amqp_bytes_t Bytes(const std::string& text) { return {text.size(), const_cast<char*>(text.data())}; }

void Succeeded(const amqp_rpc_reply_t& reply, const char* what) {
  if (reply.reply_type == AMQP_RESPONSE_NORMAL) return;
  const bool local = reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION;
  throw std::runtime_error(std::string("RabbitMQ, ") + what + ": " +
                           (local ? amqp_error_string2(reply.library_error) : "refused"));
}

/// A connection with one open channel.
struct Broker {
  explicit Broker(const std::string& url)
      : owned(amqp_new_connection(), amqp_destroy_connection), connection(owned.get()) {
    std::string text = url;
    amqp_connection_info parsed;
    if (amqp_parse_url(text.data(), &parsed) != AMQP_STATUS_OK) throw std::invalid_argument("no URL: " + url);
    amqp_socket_t* socket = amqp_tcp_socket_new(connection);
    if (amqp_socket_open_noblock(socket, parsed.host, parsed.port, &kTimeout) != AMQP_STATUS_OK) {
      throw std::runtime_error("RabbitMQ: cannot connect");
    }
    Succeeded(amqp_login(connection, parsed.vhost, 0, AMQP_DEFAULT_FRAME_SIZE, 0, AMQP_SASL_METHOD_PLAIN, parsed.user,
                         parsed.password),
              "login");
    amqp_channel_open(connection, 1);
    Succeeded(amqp_get_rpc_reply(connection), "channel");
  }

  std::unique_ptr<std::remove_pointer_t<amqp_connection_state_t>, decltype(&amqp_destroy_connection)> owned;
  amqp_connection_state_t connection;
};

/// On a channel with confirms.
void PublishConfirmed(amqp_connection_state_t connection, const std::string& exchange, const std::string& key,
                      const amqp_basic_properties_t& properties, const std::string& body) {
  amqp_basic_publish(connection, 1, Bytes(exchange), Bytes(key), 0, 0, &properties, Bytes(body));
  amqp_frame_t frame;
  const int status = amqp_simple_wait_frame_noblock(connection, &frame, &kTimeout);
  const bool method = status == AMQP_STATUS_OK && frame.frame_type == AMQP_FRAME_METHOD;
  if (!method || frame.payload.method.id != AMQP_BASIC_ACK_METHOD) {
    throw std::runtime_error("RabbitMQ did not confirm a message");
  }
  amqp_maybe_release_buffers(connection);
}

amqp_basic_properties_t Persistent() {
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_DELIVERY_MODE_FLAG;
  properties.delivery_mode = AMQP_DELIVERY_PERSISTENT;
  return properties;
}

}  // namespace

struct Publisher::Channels {
  std::string url;
  std::string exchange;
#ifdef ANTIPODE
  std::shared_ptr<antipode::rabbitmq::Shim> shim;
  struct Channel : Broker {
    explicit Channel(const Channels& of) : Broker(of.url), client(of.shim, connection, 1) {}
    void Publish(const std::string& exchange, const std::string& key, const std::string& body) {
      const auto properties = Persistent();
      client.Publish(exchange, key, false, &properties, body);
    }
    antipode::rabbitmq::Client client;
  };
#else
  struct Channel : Broker {
    explicit Channel(const Channels& of) : Broker(of.url) {
      amqp_confirm_select(connection, 1);
      Succeeded(amqp_get_rpc_reply(connection), "confirms");
    }
    void Publish(const std::string& exchange, const std::string& key, const std::string& body) {
      amqp_basic_properties_t properties = Persistent();
#ifdef OPENTELEMETRY
      const propagation::Headers sent = propagation::Sent();
      std::vector<amqp_table_entry_t> headers;
      for (const auto& [name, value] : sent) {
        headers.push_back({Bytes(name), {}});
        headers.back().value.kind = AMQP_FIELD_KIND_UTF8;
        headers.back().value.value.bytes = Bytes(value);
      }
      properties._flags |= AMQP_BASIC_HEADERS_FLAG;
      properties.headers = {static_cast<int>(headers.size()), headers.data()};
#endif
      PublishConfirmed(connection, exchange, key, properties, body);
    }
  };
#endif
  Pool<Channel> pool;
};

Publisher::Publisher(const std::string& datastore, std::string url, std::string exchange)
    : channels_(std::make_unique<Channels>()) {
  channels_->url = std::move(url);
  channels_->exchange = std::move(exchange);
#ifdef ANTIPODE
  antipode::rabbitmq::Options options;
  options.exchange = channels_->exchange;
  channels_->shim = antipode::rabbitmq::Shim::Open(datastore, channels_->url, options);
#else
  (void)datastore;
#endif
}

Publisher::~Publisher() = default;

void Publisher::Publish(const std::string& key, const std::string& body) {
  channels_->pool.With([this] { return std::make_unique<Channels::Channel>(*channels_); },
                       [&](Channels::Channel& channel) {
                         channel.Publish(channels_->exchange, key, body);
                         return true;
                       });
}

namespace {

constexpr char kAttempts[] = "x-attempts";
constexpr double kLeastDelayS = 0.1;
constexpr double kMostDelayS = 30;
/// For how long a queue of messages that wait outlives the last of them.
constexpr std::int32_t kSpareMs = 600'000;

/// A message in hand.
class Message {
 public:
  explicit Message(const amqp_envelope_t& consumed) : envelope(consumed) {}
  ~Message() { amqp_destroy_envelope(&envelope); }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  [[nodiscard]] std::string body() const {
    return {static_cast<const char*>(envelope.message.body.bytes), envelope.message.body.len};
  }
  /// How often it was for later.
  [[nodiscard]] int Attempts() const {
    for (const amqp_table_entry_t& header : Headers()) {
      if (IsAttempts(header)) return header.value.value.i32;
    }
    return 0;
  }
  /// Its own headers.
  [[nodiscard]] std::vector<amqp_table_entry_t> Own() const {
    std::vector<amqp_table_entry_t> own;
    for (const amqp_table_entry_t& header : Headers()) {
      if (!IsAttempts(header)) own.push_back(header);
    }
    return own;
  }

#ifdef OPENTELEMETRY
  [[nodiscard]] propagation::Headers Texts() const {
    propagation::Headers texts;
    const auto text = [](amqp_bytes_t bytes) { return std::string(static_cast<const char*>(bytes.bytes), bytes.len); };
    for (const amqp_table_entry_t& header : Headers()) {
      if (header.value.kind == AMQP_FIELD_KIND_UTF8) {
        texts.emplace_back(text(header.key), text(header.value.value.bytes));
      }
    }
    return texts;
  }
#endif

  amqp_envelope_t envelope;

 private:
  static bool IsAttempts(const amqp_table_entry_t& header) {
    return std::string_view(static_cast<const char*>(header.key.bytes), header.key.len) == kAttempts &&
           header.value.kind == AMQP_FIELD_KIND_I32;
  }
  [[nodiscard]] std::vector<amqp_table_entry_t> Headers() const {
    const amqp_basic_properties_t& properties = envelope.message.properties;
    if ((properties._flags & AMQP_BASIC_HEADERS_FLAG) == 0) return {};
    return {properties.headers.entries, properties.headers.entries + properties.headers.num_entries};
  }
};

/// Puts messages into other queues of the broker, and returns once they are there.
class Elsewhere {
 public:
  explicit Elsewhere(const std::string& url) : broker_(url) {
    amqp_confirm_select(broker_.connection, 1);
    Succeeded(amqp_get_rpc_reply(broker_.connection), "confirms");
  }

  /// It comes back to `queue` after a while.
  void Later(const Message& message, const std::string& queue, std::int32_t delay_ms) {
    const std::string waiting = queue + ".later." + std::to_string(delay_ms);
    amqp_table_entry_t arguments[] = {Number("x-message-ttl", delay_ms), Number("x-expires", delay_ms + kSpareMs),
                                      Text("x-dead-letter-exchange", amqp_empty_bytes),
                                      Text("x-dead-letter-routing-key", Bytes(queue))};
    Declare(waiting, {4, arguments});
    std::vector<amqp_table_entry_t> headers = message.Own();
    headers.push_back(Number(kAttempts, message.Attempts() + 1));
    Put(message, headers, waiting);
  }
  /// It stays in the queue QUEUE.dead, as it was.
  void Dead(const Message& message, const std::string& queue) {
    Declare(queue + ".dead", amqp_empty_table);
    std::vector<amqp_table_entry_t> headers = message.Own();
    Put(message, headers, queue + ".dead");
  }

 private:
  static amqp_table_entry_t Number(const char* name, std::int32_t value) {
    amqp_table_entry_t entry{amqp_cstring_bytes(name), {}};
    entry.value.kind = AMQP_FIELD_KIND_I32;
    entry.value.value.i32 = value;
    return entry;
  }
  static amqp_table_entry_t Text(const char* name, amqp_bytes_t value) {
    amqp_table_entry_t entry{amqp_cstring_bytes(name), {}};
    entry.value.kind = AMQP_FIELD_KIND_UTF8;
    entry.value.value.bytes = value;
    return entry;
  }
  void Declare(const std::string& queue, const amqp_table_t& arguments) {
    amqp_queue_declare(broker_.connection, 1, Bytes(queue), 0, /*durable=*/1, 0, 0, arguments);
    Succeeded(amqp_get_rpc_reply(broker_.connection), "a queue for later");
  }
  void Put(const Message& message, std::vector<amqp_table_entry_t>& headers, const std::string& queue) {
    amqp_basic_properties_t properties = message.envelope.message.properties;
    properties._flags |= AMQP_BASIC_HEADERS_FLAG;
    properties.headers = {static_cast<int>(headers.size()), headers.data()};
    PublishConfirmed(broker_.connection, "", queue, properties, message.body());
  }

  Broker broker_;
};

/// What was said of messages in hand, to be done by the thread that has their connection.
class Verdicts {
 public:
  void Put(std::uint64_t tag, const Outcome& outcome) {
    const std::lock_guard guard(lock_);
    said_.emplace_back(tag, outcome);
  }
  std::vector<std::pair<std::uint64_t, Outcome>> Take() {
    const std::lock_guard guard(lock_);
    return std::exchange(said_, {});
  }

 private:
  std::mutex lock_;
  std::vector<std::pair<std::uint64_t, Outcome>> said_;
};

/// Twice as long each time, and not shorter than what is estimated.
std::int32_t DelayMs(int attempts, double eta_s) {
  double delay_s = kLeastDelayS;
  for (int doubled = 0; delay_s < kMostDelayS && (doubled < attempts || delay_s < eta_s); ++doubled) delay_s *= 2;
  return static_cast<std::int32_t>(std::min(delay_s, kMostDelayS) * 1000);
}

}  // namespace

struct Consumer::Queue {
  std::string url;
  std::string name;
  int prefetch = 1;
#ifdef ANTIPODE
  std::shared_ptr<antipode::rabbitmq::Shim> shim;
#endif

  void Handle(const Handler& handler, const Message& message, const std::shared_ptr<Verdicts>& verdicts) const {
#ifdef ANTIPODE
    const auto& properties = message.envelope.message.properties;
    const antipode::Headers headers = antipode::rabbitmq::HeadersOf(properties);
    MeasureMessage(headers);
    const antipode::ScopeGuard request(shim->Received(headers));
#elif defined(OPENTELEMETRY)
    const propagation::Received request(message.Texts());
#endif
    const auto handled = [verdicts, tag = message.envelope.delivery_tag](const Outcome& outcome) {
      verdicts->Put(tag, outcome);
    };
    try {
      handler(message.body(), handled);
    } catch (const std::exception& error) {
      handled({Outcome::kLater, error.what()});
    }
  }

  /// Takes a message from the queue, once it is done with, or somewhere else.
  void Settle(amqp_connection_state_t connection, const Message& message, const Outcome& outcome) const {
    const int attempts = message.Attempts();
    if (outcome.what == Outcome::kNever || (outcome.what == Outcome::kLater && attempts + 1 >= kMostAttempts)) {
      Elsewhere(url).Dead(message, name);
      std::cerr << "a message of " << name << " is given up after " << attempts + 1 << " attempts: " << outcome.why
                << ". It is in the queue " << name << ".dead: move it back into " << name << " once that is mended"
                << std::endl;
    } else if (outcome.what == Outcome::kLater) {
      const std::int32_t delay_ms = DelayMs(attempts, outcome.eta_s);
      Elsewhere(url).Later(message, name, delay_ms);
      std::cerr << "a message of " << name << " comes again in " << delay_ms << " ms, attempt " << attempts + 1
                << " of " << kMostAttempts << ": " << outcome.why << std::endl;
    }
    if (amqp_basic_ack(connection, 1, message.envelope.delivery_tag, 0) != AMQP_STATUS_OK) {
      throw std::runtime_error("RabbitMQ: cannot acknowledge");
    }
  }

  void Consume(const Handler& handler) const {
    const Broker broker(url);
    amqp_basic_qos(broker.connection, 1, 0, static_cast<std::uint16_t>(prefetch), 0);
    Succeeded(amqp_get_rpc_reply(broker.connection), "prefetch");
    amqp_basic_consume(broker.connection, 1, Bytes(name), amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
    Succeeded(amqp_get_rpc_reply(broker.connection), "consume");
    const auto verdicts = std::make_shared<Verdicts>();
    std::map<std::uint64_t, std::unique_ptr<Message>> here;
    for (;;) {
      const timeval limit = here.empty() ? timeval{1, 0} : timeval{0, kTellMicros};
      amqp_maybe_release_buffers(broker.connection);
      amqp_envelope_t envelope;
      const amqp_rpc_reply_t reply = amqp_consume_message(broker.connection, &envelope, &limit, 0);
      if (reply.reply_type != AMQP_RESPONSE_LIBRARY_EXCEPTION || reply.library_error != AMQP_STATUS_TIMEOUT) {
        Succeeded(reply, "consume");
        auto& message = here[envelope.delivery_tag] = std::make_unique<Message>(envelope);
        Handle(handler, *message, verdicts);
      }
      for (const auto& [tag, outcome] : verdicts->Take()) {
        Settle(broker.connection, *here.at(tag), outcome);
        here.erase(tag);
      }
    }
  }
};

Consumer::Consumer(const std::string& datastore, std::string url, std::string queue, int prefetch)
    : queue_(std::make_unique<Queue>()) {
  queue_->url = std::move(url);
  queue_->name = std::move(queue);
  queue_->prefetch = prefetch;
#ifdef ANTIPODE
  antipode::rabbitmq::Options options;
  options.queue = queue_->name;
  options.reads_from = antipode::ReadsFrom::kReplica;
  queue_->shim = antipode::rabbitmq::Shim::Open(datastore, queue_->url, options);
#else
  (void)datastore;
#endif
}

Consumer::~Consumer() = default;

void Consumer::Run(const Handler& handler) {
  for (;;) {
    try {
      queue_->Consume(handler);
    } catch (const std::exception& error) {
      std::cerr << error.what() << ": again" << std::endl;
      std::this_thread::sleep_for(kAgain);
    }
  }
}

}  // namespace social_graph
