#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/export.h"
#include "antipode/lineage.h"
#include "antipode/propagation.h"
#include "antipode/shim.h"

struct amqp_basic_properties_t_;

namespace antipode::rabbitmq {

/// A message was refused, came back, or nobody knows; or the broker does not answer.
class ANTIPODE_EXPORT Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Error() override;
};

/// How a process learns which publications were routed in its region: a private queue, the tap, is bound to the shim's
/// exchange. Without bindings it has no tap, and all that is known is what the shim itself receives: for queues whose
/// messages all come here.
struct Receipts {
  /// Keys to bind the tap with: `#` for all that a topic, fanout or headers exchange routes. Of a direct exchange name
  /// each key; its publishers number `by_routing_key`.
  std::vector<std::string> bindings = {"#"};
  double gap_age = 5;  ///< Seconds after which a publication that may have been missed counts as missed.
};

/// How connections are encrypted, where the URL says `amqps://`.
struct Tls {
  std::string ca;    ///< A file of the certificates that are trusted.
  std::string cert;  ///< A file of the one that this process shows, and one of its key; empty for none.
  std::string key;
  bool verify = true;  ///< Whether the broker must show a trusted one, in the name of its host.
};

struct Options {
  std::string exchange;        ///< Where messages are published; empty: the default exchange, whose keys are queues.
  std::string queue;           ///< What `Read` and `Receive` take from.
  bool mandatory = false;      ///< A message that no queue takes is an error.
  bool merge_reads = true;     ///< Whether what a message depends on enters the current scope of a `Read`.
  double confirm_timeout = 5;  ///< Seconds after which a message without a confirm is in doubt.
  std::optional<Receipts> receipts = {};       ///< How barriers learn what was routed; none: they wait for no message.
  ReadsFrom reads_from = ReadsFrom::kPrimary;  ///< Whether that broker is where messages are published first.
  bool by_routing_key = false;  ///< Numbers by routing key, for readers whose receipts are bound to some.
  std::optional<Tls> tls = {};  ///< For URLs that begin with `amqps://`.
};

/// One consumed message.
struct Delivery {
  std::string value;
  std::string key;           ///< The routing key that it was published with.
  Lineage lineage;           ///< What it depends on, itself included.
  bool redelivered = false;  ///< Whether it was delivered before, and not acknowledged.
};

/// One broker: messages carry lineages in their headers, and name themselves as the write that they are. Thread-safe;
/// publishing, consuming and receipts have a connection each.
///
///     auto news = antipode::rabbitmq::Shim::Open("news", "amqp://news.internal", {"posts", ""});
///     news->Write("eu", id);              // after a write of the post: its reader's barrier waits for that
///
/// With receipts a barrier waits until a message was routed at the broker where this process reads. Without them
/// messages are reported by barriers, and never waited for.
class ANTIPODE_EXPORT Shim final : public Store {
 public:
  using Handler = std::function<void(const Delivery&)>;

  /// Registers the shim. Receipts are connected, and a broker that cannot be reached now is no error; all else connects
  /// when it is first used. Throws ConfigurationError where the URL is none, its certificates do not fit together, a
  /// gap's age is not positive, or the broker refuses the receipts: the user, or the exchange, which must exist.
  static std::shared_ptr<Shim> Open(const std::string& datastore, const std::string& url, const Options& options);
  ~Shim() override;

  /// Publishes and waits for the confirm. `lineage` is what the message depends on, the current one unless given;
  /// returns it with the message, which enters the current scope. The message fulfils the promise for whoever has
  /// receipts. Throws Error; where the broker may have the message, the scope is marked.
  Lineage Write(std::string_view key, std::string_view value, const std::optional<Lineage>& lineage = std::nullopt,
                const std::optional<Promise>& fulfils = std::nullopt);
  /// Takes the next message off the queue, at most once; none where there is none. Throws Error.
  std::optional<Delivery> Read();
  /// Handles the next message of the queue in a separate scope, at least once: it is acknowledged when the handler
  /// returns, and put back when that throws, as a barrier in it does. Returns whether there was one. Throws Error, and
  /// what the handler throws; a message whose acknowledgement is lost is delivered again.
  bool Receive(const Handler& handler);
  /// What a message depends on that you consumed yourself, itself included: begin its scope with that. Receipts learn
  /// that it came.
  Lineage Received(const Headers& headers);

  [[nodiscard]] bool Waitable() const override;
  [[nodiscard]] bool CanPoll() const override;
  [[nodiscard]] bool Promises() const override;
  std::unique_ptr<Endpoint> OpenEndpoint(double timeout_s) override;
  void Close() override;
  void Forked() override;

  /// For the library.
  struct Inside;
  [[nodiscard]] Inside& inside() const noexcept { return *inside_; }

 private:
  class Links;
  Shim(const std::string& datastore, const std::string& url, const Options& options);
  std::unique_ptr<Links> links_;
  std::unique_ptr<Inside> inside_;
};

/// The headers of a message that you consumed yourself by librabbitmq, for `Shim::Received`. One that is no text counts
/// as one that cannot be read.
///
///     antipode::ScopeGuard request(news->Received(antipode::rabbitmq::HeadersOf(envelope.message.properties)));
ANTIPODE_EXPORT Headers HeadersOf(const amqp_basic_properties_t_& properties);
/// The header with which a message that you publish yourself fulfils a promise once it is routed.
ANTIPODE_EXPORT Headers::value_type FulfilmentOf(const Promise& promise);

}  // namespace antipode::rabbitmq
