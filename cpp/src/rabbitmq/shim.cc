#include <mutex>

#include "antipode/clock.h"
#include "antipode/errors.h"
#include "antipode/members.h"
#include "antipode/observer.h"
#include "antipode/rabbitmq.h"
#include "antipode/scope.h"
#include "antipode/stored.h"
#include "rabbitmq/channel.h"
#include "rabbitmq/publisher.h"

namespace antipode::rabbitmq {
namespace {

constexpr std::string_view kWrite = "antipode-write";
constexpr std::string_view kPromiseHeader = "antipode-promise";

/// The message's own write; none where it names none. Throws LineageDecodeError, or std::invalid_argument where it
/// names no single write with a number.
std::optional<WriteId> OwnWrite(const Headers& headers) {
  const auto found = ValuesOf(headers, kWrite);
  if (found.empty()) return std::nullopt;
  const std::vector<WriteId> writes = ReceivedText(found.front()).writes();
  if (writes.size() != 1 || !std::holds_alternative<std::uint64_t>(writes.front().version)) {
    throw std::invalid_argument("the message names " + std::to_string(writes.size()) +
                                " writes, or one without number");
  }
  return writes.front();
}

/// What the consumer of a message depends on, the message itself included.
Lineage LineageOf(const Headers& headers, const std::string& datastore) {
  Lineage lineage;
  for (const std::string& each : Members(ValuesOf(headers, kBaggage))) {
    lineage = lineage.Merge(Readable(datastore, each));
  }
  try {
    const auto own = OwnWrite(headers);
    return own ? lineage.Append(*own) : lineage;
  } catch (const std::exception&) {
    return lineage.Merge(Readable(datastore, "?"));
  }
}

}  // namespace

/// The two connections, opened when they are needed and found dead.
class Shim::Links {
 public:
  Links(Shim& shim, const std::string& url, Options options) : shim_(shim), place_(url), options_(std::move(options)) {}

  Lineage Write(std::string_view key, std::string_view value, const std::optional<Lineage>& given,
                const std::optional<Promise>& fulfils) {
    const std::lock_guard guard(publishing_);
    if (!publisher_ || !publisher_->Alive()) {
      publisher_.reset();
      publisher_ = std::make_unique<Channel>(place_, true);
      publications_ = Publications();
    }
    // What is published to the default exchange is numbered for each queue.
    const std::string lane = options_.exchange.empty() ? std::string(key) : "";
    const Clock& clock = shim_.clock();
    const auto unix_ms = static_cast<std::uint64_t>(clock.UnixSeconds() * 1'000);
    const auto [publisher, number] = publications_.Next(lane, clock.Now(), unix_ms);
    const WriteId write{shim_.datastore(), publisher, number, clock.Hour()};
    const auto scope = CurrentScope();
    Headers headers{{std::string(kWrite), Lineage({write}).Serialize()}};
    const Lineage base = given ? *given : Current();
    const std::string text = given || !scope ? StoredText(base) : scope->text();
    if (!base.empty()) headers.emplace_back(kBaggage, WithMember("", text));
    if (fulfils) headers.emplace_back(kPromiseHeader, TokenOf(*fulfils));
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
    const std::lock_guard guard(consuming_);
    if (!consumer_ || !consumer_->Alive()) {
      consumer_.reset();
      consumer_ = std::make_unique<Channel>(place_, false);
    }
    auto message = consumer_->Get(options_.queue);
    if (!message) return std::nullopt;
    Delivery delivery{std::move(message->body), std::move(message->key),
                      LineageOf(message->headers, shim_.datastore())};
    const auto scope = CurrentScope();
    if (options_.merge_reads && scope) scope->Merge(delivery.lineage);
    return delivery;
  }

  void Close() {
    const std::scoped_lock guard(publishing_, consuming_);
    publisher_.reset();
    consumer_.reset();
  }

 private:
  Shim& shim_;
  Place place_;
  Options options_;
  std::mutex publishing_;
  std::unique_ptr<Channel> publisher_;
  Publications publications_;
  std::mutex consuming_;
  std::unique_ptr<Channel> consumer_;
};

Shim::Shim(const std::string& datastore, const std::string& url, const Options& options)
    : Store(datastore), links_(std::make_unique<Links>(*this, url, options)) {}

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

std::unique_ptr<Endpoint> Shim::OpenEndpoint(double) {
  throw Unreachable("'" + datastore() + "' listens to no receipts");
}

void Shim::Close() {
  Store::Close();
  links_->Close();
}

}  // namespace antipode::rabbitmq
