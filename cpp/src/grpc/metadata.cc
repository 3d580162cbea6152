#include "grpc/metadata.h"

#include <algorithm>

#include "antipode/members.h"
#include "antipode/observer.h"
#include "antipode/settings.h"

namespace antipode::rpc {
namespace {

/// What a receiver takes by default; beyond it gRPC refuses calls.
constexpr std::size_t kMaxBytes = 8'192;
/// What HTTP/2 counts for each entry in addition to its characters.
constexpr std::size_t kEntryBytes = 32;
/// Left free in a request: gRPC's own entries, and what call credentials add after us.
constexpr std::size_t kRequestSpare = 2'048;
/// The same without credentials, for what says little more than that something is missing.
constexpr std::size_t kRequestLeast = 768;
/// gRPC's own entries of a response; its message comes on top.
constexpr std::size_t kResponseSpare = 448;
/// The least room that a lineage is given: less might not hold its own mark.
constexpr std::size_t kLeast = 64;
constexpr std::size_t kMemberBytes = 9;
constexpr std::string_view kBinary = "-bin";

std::size_t Left(std::size_t of, std::size_t used) { return of > used ? of - used : 0; }

std::size_t Size(const Entries& entries) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : entries) {
    const bool binary = name.size() > kBinary.size() && name.rfind(kBinary) == name.size() - kBinary.size();
    bytes += kEntryBytes + name.size() + (binary ? (value.size() * 4 + 2) / 3 : value.size());
  }
  return bytes;
}

/// The bytes of a status message, of which all but plain characters take three.
std::size_t Encoded(std::string_view message) {
  std::size_t bytes = 0;
  for (const char c : message) bytes += c >= ' ' && c <= '~' && c != '%' ? 1U : 3U;
  return bytes;
}

std::string Joined(const Entries& entries, const char* name) {
  std::string joined;
  const auto [begin, end] = entries.equal_range(name);
  for (auto each = begin; each != end; ++each) {
    if (each != begin) joined += ',';
    joined += each->second;
  }
  return joined;
}

void Set(Entries& entries, const char* name, const std::string& value) {
  entries.erase(name);
  if (!value.empty()) entries.emplace(name, value);
}

/// Lets the lineage in `baggage` be one that fits. Without it, the entry that says it was sent shows what is missing.
void Shorten(Entries& entries, const std::string& baggage, const std::string& text, std::size_t fixed) {
  const std::size_t used = Size(entries) + fixed - text.size();
  std::size_t room = Left(kMaxBytes - kRequestSpare, used);
  if (room < kLeast) room = std::min(kLeast, Left(kMaxBytes - kRequestLeast, used));
  const std::string shorter = Fitting(text, room);
  if (shorter == text) return;
  const std::string others = WithoutMember(baggage).value_or("");
  Set(entries, kBaggage, shorter.empty() ? others : WithMember(others, shorter));
}

}  // namespace

void Outfit(const OutgoingCall& call, Entries& entries, std::size_t fixed) {
  Headers headers;
  for (const char* name : {kBaggage, kSent}) {
    const auto [begin, end] = entries.equal_range(name);
    for (auto each = begin; each != end; ++each) headers.emplace_back(*each);
  }
  call.Outfit(headers);
  entries.erase(kBaggage);
  entries.erase(kSent);
  entries.insert(headers.begin(), headers.end());
  const std::string baggage = Joined(entries, kBaggage);
  const auto texts = Members({baggage});
  if (texts.size() == 1 && Size(entries) + fixed > kMaxBytes - kRequestSpare) {
    Shorten(entries, baggage, texts.front(), fixed);
  }
}

std::vector<std::string> TakeLineages(Entries& entries) {
  std::vector<std::string> lineages;
  const auto [begin, end] = entries.equal_range(kLineage);
  for (auto each = begin; each != end; ++each) lineages.push_back(each->second);
  entries.erase(begin, end);
  return lineages;
}

bool MayHaveLostAnswer(const Entries& entries) { return !entries.empty() && TrailingRoom(entries, "") < kLeast; }

std::size_t TrailingRoom(const Entries& others, std::string_view message) {
  const std::size_t used = Size(others) + Encoded(message) + kResponseSpare + kEntryBytes + sizeof(kLineage) - 1;
  return Left(kMaxBytes, used);
}

std::string Fitting(const std::string& text, std::size_t room) {
  if (text.size() <= room) return text;
  Count("grpc_metadata_over_limit");
  WarnOnce("grpc_metadata_over_limit", "", "",
           "metadata exceeds 8192 bytes: its lineage is cut, and marked as incomplete");
  const auto lineage = Lineage::TryDeserialize(text);
  if (!lineage || room < kLeast) return "";
  return lineage->Serialize(Bound{room + kMemberBytes, CurrentSettings().egress});
}

}  // namespace antipode::rpc
