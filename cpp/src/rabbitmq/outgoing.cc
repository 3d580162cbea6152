#include "rabbitmq/outgoing.h"

#include <utility>

#include "antipode/clock.h"
#include "antipode/members.h"
#include "antipode/observer.h"
#include "antipode/rabbitmq_messages.h"
#include "antipode/settings.h"
#include "antipode/stored.h"
#include "antipode/text.h"
#include "rabbitmq/headers.h"

namespace antipode::rabbitmq {
namespace {

constexpr const char* kReturned = "no queue takes the message";
constexpr const char* kRefused = "a queue refused the message; another may have it";

/// What depends on a lineage of the application's own in `baggage`, on the current one, or both, as text.
std::string CausesOf(const Headers& given, const std::string& datastore) {
  const auto scope = CurrentScope();
  const std::vector<std::string> members = Members(ValuesOf(given, kBaggage));
  const std::string text = scope ? scope->text() : "";  // A dry run learns by it that something is sent.
  if (members.empty()) return text;
  Lineage lineage = Current();
  for (const std::string& each : members) lineage = lineage.Merge(Readable(datastore, each));
  return StoredText(lineage);
}

}  // namespace

Headers Outgoing(const Headers& given, const std::optional<WriteId>& write, const std::string& datastore) {
  Headers headers;
  if (write) headers.emplace_back(kWriteHeader, Lineage({*write}).Serialize());
  std::string rest;
  for (const std::string_view each : ValuesOf(given, kBaggage)) {
    if (each != kNoText) rest += (rest.empty() ? "" : ",") + std::string(each);
  }
  const std::string text = CausesOf(given, datastore);
  rest = WithoutMember(rest).value_or(rest);
  if (!text.empty()) rest = WithMember(rest, text);
  if (!rest.empty()) headers.emplace_back(kBaggage, rest);
  return headers;
}

Publication OutgoingMessages::Named(std::string lane) {
  Publication publication = Unheard();
  const Clock& clock = SystemClock();
  const auto unix_ms = static_cast<std::uint64_t>(clock.UnixSeconds() * 1'000);
  publication.lane = std::move(lane);
  const auto [publisher, number] = publications_.Next(publication.lane, clock.Now(), unix_ms);
  publication.write = WriteId{datastore_, publisher, number, clock.Hour()};
  return publication;
}

Publication OutgoingMessages::Unheard() {
  Publication publication;
  publication.scope = CurrentScope();
  confirms_.Enter(publication.scope);
  return publication;
}

void OutgoingMessages::Unname(Publication& publication) {
  if (!publication.write) return;
  publication.write.reset();
  publications_.End(publication.lane);
  if (publication.scope) publication.scope->MarkIncomplete(datastore_, "unsampled");
}

void OutgoingMessages::Sent(Publication publication) {
  if (publication.write && publication.scope) {
    publication.unknown = std::make_unique<OpenBranch>(publication.scope);
    publication.unknown->Unread(datastore_);
  }
  confirms_.Sent(std::move(publication));
}

void OutgoingMessages::Returned(const Headers& headers) {
  std::optional<WriteId> write;
  try {
    write = OwnWrite(headers);
  } catch (const std::exception&) {  // It is none of ours.
  }
  confirms_.Returned(write);
}

std::string OutgoingMessages::Settle(std::uint64_t tag, bool multiple, bool taken) {
  std::string why;
  for (Publication& each : confirms_.Settled(tag, multiple)) {
    if (each.returned) {
      publications_.End(each.lane);
      if (why.empty()) why = kReturned;
    } else if (!taken) {
      Doubt(each);
      if (why.empty()) why = kRefused;
    } else if (each.write && each.scope) {
      each.scope->Append(*each.write);
    } else if (each.write) {
      Count("unscoped_write", datastore_);
    }
  }
  return why;
}

/// The broker may have it, in some queues.
void OutgoingMessages::Doubt(const Publication& publication) {
  if (!publication.write) return;
  publications_.End(publication.lane);
  if (publication.scope) publication.scope->MarkIncomplete(datastore_, "in_doubt");
}

void OutgoingMessages::DoubtAll() {
  for (const Publication& each : confirms_.Rest()) Doubt(each);
}

void OutgoingMessages::RefuseAll() {
  for (const Publication& each : confirms_.Rest()) publications_.End(each.lane);
}

/// What a client of the application's own publishes.
class Messages::Channel {
 public:
  Channel(std::string datastore, bool by_routing_key)
      : datastore_(std::move(datastore)), by_routing_key_(by_routing_key), messages_(datastore_) {}

  Headers Next(std::string_view key, const Headers& given, bool heard) {
    if (Disabled()) {
      messages_.Sent({});
      return given;
    }
    Publication next = heard ? messages_.Named(by_routing_key_ ? std::string(key) : "") : messages_.Unheard();
    if (!heard) Count("unheard_publish", datastore_);
    Headers headers = Outgoing(given, next.write, datastore_);
    for (const auto& each : given) {
      const std::string name = text::Lower(each.first);
      if (name != kWriteHeader && name != kBaggage) headers.push_back(each);
    }
    messages_.Sent(std::move(next));
    return headers;
  }
  OutgoingMessages& messages() { return messages_; }

 private:
  std::string datastore_;
  bool by_routing_key_;
  OutgoingMessages messages_;
};

Messages::Messages(std::string datastore, bool by_routing_key)
    : channel_(std::make_unique<Channel>(std::move(datastore), by_routing_key)) {}
Messages::~Messages() {
  if (channel_) Lost();
}
Messages::Messages(Messages&&) noexcept = default;
Messages& Messages::operator=(Messages&& other) noexcept {
  std::swap(channel_, other.channel_);
  return *this;
}

Headers Messages::Next(std::string_view routing_key, const Headers& given, bool heard) {
  return channel_->Next(routing_key, given, heard);
}
void Messages::Confirmed(std::uint64_t tag, bool multiple) { channel_->messages().Settle(tag, multiple, true); }
void Messages::Refused(std::uint64_t tag, bool multiple) { channel_->messages().Settle(tag, multiple, false); }
void Messages::Returned(const Headers& headers) { channel_->messages().Returned(headers); }
void Messages::Lost() { channel_->messages().DoubtAll(); }

}  // namespace antipode::rabbitmq
