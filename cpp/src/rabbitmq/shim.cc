#include <mutex>

#include "antipode/clock.h"
#include "antipode/errors.h"
#include "antipode/members.h"
#include "antipode/observer.h"
#include "antipode/rabbitmq.h"
#include "antipode/scope.h"
#include "antipode/settings.h"
#include "antipode/stored.h"
#include "rabbitmq/channel.h"
#include "rabbitmq/endpoint.h"
#include "rabbitmq/headers.h"
#include "rabbitmq/inside.h"
#include "rabbitmq/ledger.h"
#include "rabbitmq/publisher.h"
#include "rabbitmq/tap.h"

namespace antipode::rabbitmq {
namespace {

std::shared_ptr<Ledger> LedgerOf(const Options& options, const Clock& clock) {
  if (!options.receipts || Disabled()) return nullptr;
  const double age_s = options.receipts->gap_age;
  if (!(age_s > 0)) throw ConfigurationError("a gap's age must be positive, not " + std::to_string(age_s));
  return std::make_shared<Ledger>(age_s, clock);
}

}  // namespace

/// The connections: two that are opened when they are needed and found dead, and that of receipts.
class Shim::Links {
 public:
  Links(Shim& shim, const std::string& url, Options options)
      : shim_(shim), place_(url, options.tls), options_(std::move(options)), ledger_(LedgerOf(options_, shim.clock())) {
    if (const auto tap = Listening()) tap->Await();
  }

  [[nodiscard]] bool HasReceipts() const { return ledger_ != nullptr; }
  [[nodiscard]] const Options& options() const { return options_; }

  std::unique_ptr<Endpoint> Open() {
    if (!ledger_) throw Unreachable("'" + shim_.datastore() + "' has no receipts");
    return std::make_unique<ReceiptsEndpoint>(ledger_, Listening());
  }

  Lineage Write(std::string_view key, std::string_view value, const std::optional<Lineage>& given,
                const std::optional<Promise>& fulfils) {
    // In a child process it may be the first: what is published before it listens, it could not wait for.
    if (const auto tap = Listening()) tap->AwaitAttempt();
    const std::lock_guard guard(publishing_);
    if (!publisher_ || !publisher_->Alive()) {
      publisher_.reset();
      publisher_ = std::make_unique<Channel>(place_, For::kPublishing);
      publications_ = Publications();
    }
    if (Disabled()) {
      publisher_->Publish(options_.exchange, key, value, {}, options_.mandatory, options_.confirm_timeout);
      return given.value_or(Lineage());
    }
    // What is published to the default exchange is numbered for each queue.
    const bool by_routing_key = options_.by_routing_key || options_.exchange.empty();
    const std::string lane = by_routing_key ? std::string(key) : "";
    const Clock& clock = shim_.clock();
    const auto unix_ms = static_cast<std::uint64_t>(clock.UnixSeconds() * 1'000);
    const auto [publisher, number] = publications_.Next(lane, clock.Now(), unix_ms);
    const WriteId write{shim_.datastore(), publisher, number, clock.Hour()};
    const auto scope = CurrentScope();
    Headers headers{{std::string(kWriteHeader), Lineage({write}).Serialize()}};
    const Lineage base = given ? *given : Current();
    const std::string current = scope ? scope->text() : "";  // A dry run learns by it that something is sent.
    const std::string text = given || !scope ? StoredText(base) : current;
    if (!base.empty() || text != StoredText(Lineage())) headers.emplace_back(kBaggage, WithMember("", text));
    if (fulfils) headers.push_back(FulfilmentOf(*fulfils));
    try {
      publisher_->Publish(options_.exchange, key, value, headers, options_.mandatory, options_.confirm_timeout);
    } catch (const Refused&) {
      publications_.End(lane);
      throw;
    } catch (const Error&) {
      publications_.End(lane);
      if (scope) scope->MarkIncomplete(shim_.datastore(), "in_doubt");
      throw;
    }
    if (scope) {
      scope->Append(write);
    } else {
      Count("unscoped_write", shim_.datastore());
    }
    return base.Append(write);
  }

  std::optional<Delivery> Read() {
    std::unique_lock guard(consuming_);
    const auto message = Consumer()->Get(options_.queue, true);
    guard.unlock();
    if (!message) return std::nullopt;
    Delivery delivery = Delivered(*message);
    const auto scope = CurrentScope();
    Began(message->headers);
    if (options_.merge_reads && scope) scope->Merge(delivery.lineage);
    return delivery;
  }

  bool Receive(const Handler& handler) {
    std::unique_lock guard(consuming_);
    const std::shared_ptr<Channel> channel = Consumer();
    const auto message = channel->Get(options_.queue, false);
    guard.unlock();
    if (!message) return false;
    try {
      const Delivery delivery = Delivered(*message);
      const ScopeGuard scope(delivery.lineage);
      Began(message->headers);
      handler(delivery);
    } catch (...) {
      PutBack(*channel, message->tag);
      throw;
    }
    guard.lock();
    channel->Acknowledge(message->tag);
    return true;
  }

  /// What the consumer of a message depends on.
  Lineage Received(const Headers& headers) {
    if (Disabled()) return {};
    Listening();
    const rabbitmq::Received received = ReceivedOf(headers, shim_.datastore());
    if (ledger_) Learn(headers, received);
    return received.lineage();
  }

  /// A message is handled: a dry run reports those without a lineage.
  void Began(const Headers& headers) const {
    if (!HasLineage(headers)) RecordUnlabelled(shim_.datastore());
  }

  void Close() {
    std::shared_ptr<Tap> tap;
    {
      const std::lock_guard guard(listening_);
      closed_ = true;
      tap = tap_;
    }
    if (tap) tap->Close();
    const std::scoped_lock guard(publishing_, consuming_);
    publisher_.reset();
    consumer_.reset();
  }

  /// A child process has neither the thread nor the connections. It listens from its first use of the shim on.
  void Forked() {
    Renew(publishing_);
    Renew(publisher_);
    Renew(publications_);
    Renew(consuming_);
    Renew(consumer_);
    Renew(listening_);
    Renew(ledger_, LedgerOf(options_, shim_.clock()));
    Renew(tap_);
  }

 private:
  /// What hears receipts; null where nothing is to, or the shim is closed.
  std::shared_ptr<Tap> Listening() {
    if (!ledger_ || options_.receipts->bindings.empty()) return nullptr;
    const std::lock_guard guard(listening_);
    if (!tap_ && !closed_) {
      tap_ = std::make_shared<Tap>(place_, options_.exchange, *options_.receipts, ledger_, shim_.datastore());
    }
    return tap_;
  }

  /// Under the lock `consuming_`, as all that is done with it.
  std::shared_ptr<Channel> Consumer() {
    if (!consumer_ || !consumer_->Alive()) {
      consumer_.reset();
      consumer_ = std::make_shared<Channel>(place_, For::kTaking);
    }
    return consumer_;
  }

  void PutBack(Channel& channel, std::uint64_t tag) {
    const std::lock_guard guard(consuming_);
    try {
      channel.PutBack(tag);
    } catch (const Error&) {  // The connection is lost as well: the broker puts it back on its own.
    }
  }

  Delivery Delivered(const Message& message) {
    return {message.body, message.key, Received(message.headers), message.redelivered};
  }

  void Learn(const Headers& headers, const rabbitmq::Received& received) {
    try {
      const auto promise = OwnPromise(headers);
      if (promise && promise->datastore == shim_.datastore()) ledger_->Fulfil(*promise);
    } catch (const LineageDecodeError&) {  // Counted where the tap sees it.
    }
    if (received.write && received.write->datastore == shim_.datastore()) {
      ledger_->Deliver(*received.write, received.After());
    }
  }

  Shim& shim_;
  Place place_;
  Options options_;
  std::mutex publishing_;
  std::unique_ptr<Channel> publisher_;
  Publications publications_;
  std::mutex consuming_;
  std::shared_ptr<Channel> consumer_;
  std::mutex listening_;
  bool closed_ = false;
  std::shared_ptr<Ledger> ledger_;
  std::shared_ptr<Tap> tap_;
};

Shim::Shim(const std::string& datastore, const std::string& url, const Options& options)
    : Store(datastore, options.reads_from),
      links_(std::make_unique<Links>(*this, url, options)),
      inside_(new Inside{links_->options()}) {}

Shim::~Shim() { links_->Close(); }

std::shared_ptr<Shim> Shim::Open(const std::string& datastore, const std::string& url, const Options& options) {
  const std::shared_ptr<Shim> made(new Shim(datastore, url, options));
  Register(made);
  return made;
}

Lineage Shim::Write(std::string_view key, std::string_view value, const std::optional<Lineage>& lineage,
                    const std::optional<Promise>& fulfils) {
  return links_->Write(key, value, lineage, fulfils);
}

std::optional<Delivery> Shim::Read() { return links_->Read(); }
bool Shim::Receive(const Handler& handler) { return links_->Receive(handler); }
Lineage Shim::Received(const Headers& headers) {
  links_->Began(headers);
  return links_->Received(headers);
}

bool Shim::Waitable() const { return links_->HasReceipts(); }
bool Shim::CanPoll() const { return links_->HasReceipts(); }
bool Shim::Promises() const { return links_->HasReceipts(); }

std::unique_ptr<Endpoint> Shim::OpenEndpoint(double) { return links_->Open(); }

void Shim::Forked() {
  Store::Forked();
  links_->Forked();
}

void Shim::Close() {
  Store::Close();
  links_->Close();
}

Headers::value_type FulfilmentOf(const Promise& promise) { return {std::string(kPromiseHeader), TokenOf(promise)}; }

}  // namespace antipode::rabbitmq
