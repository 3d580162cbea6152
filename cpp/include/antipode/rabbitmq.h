#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "antipode/export.h"
#include "antipode/lineage.h"
#include "antipode/shim.h"

namespace antipode::rabbitmq {

/// A message was refused, came back, or nobody knows; or the broker does not answer.
class ANTIPODE_EXPORT Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Error() override;
};

struct Options {
  std::string exchange;        ///< Where messages are published; empty: the default exchange, whose keys are queues.
  std::string queue;           ///< What `Read` takes from.
  bool mandatory = false;      ///< A message that no queue takes is an error.
  bool merge_reads = true;     ///< Whether what a message depends on enters the current scope.
  double confirm_timeout = 5;  ///< Seconds after which a message without a confirm is in doubt.
};

/// One consumed message.
struct Delivery {
  std::string value;
  std::string key;  ///< The routing key that it was published with.
  Lineage lineage;  ///< What it depends on, itself included.
};

/// One broker: messages carry lineages in their headers, and name themselves as the write that they are. Thread-safe;
/// publishing and consuming have a connection each. It listens to no receipts: barriers report messages, and do not
/// wait for them.
///
///     auto news = antipode::rabbitmq::Shim::Open("news", "amqp://news.internal", {"posts", ""});
///     news->Write("eu", id);              // after a write of the post: its reader's barrier waits for that
class ANTIPODE_EXPORT Shim final : public Store {
 public:
  /// Connects when it is first used, and registers the shim. Throws ConfigurationError where the URL is none.
  static std::shared_ptr<Shim> Open(const std::string& datastore, const std::string& url, const Options& options);
  ~Shim() override;

  /// Publishes and waits for the confirm. `lineage` is what the message depends on, the current one unless given;
  /// returns it with the message, which enters the current scope. A message that is confirmed fulfils the promise.
  /// Throws Error; where the broker may have the message, the scope is marked.
  Lineage Write(std::string_view key, std::string_view value, const std::optional<Lineage>& lineage = std::nullopt,
                const std::optional<Promise>& fulfils = std::nullopt);
  /// Takes the next message off the queue, at most once; none where there is none. Throws Error.
  std::optional<Delivery> Read();

  [[nodiscard]] bool Waitable() const override { return false; }
  [[nodiscard]] bool Looks() const override { return false; }
  std::unique_ptr<Endpoint> OpenEndpoint(double timeout_s) override;
  void Close() override;

 private:
  class Links;
  Shim(const std::string& datastore, const std::string& url, const Options& options);
  std::unique_ptr<Links> links_;
};

}  // namespace antipode::rabbitmq
