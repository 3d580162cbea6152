#include "dry_run/notes.h"

#include <cstdint>
#include <string_view>

#include "antipode/text.h"
#include "lineage/grammar.h"
#include "request/inside.h"
#include "runtime/random_hex.h"

namespace antipode::dry_run {
namespace {

constexpr std::string_view kRequest = "0r";
constexpr std::string_view kGuard = "0g";
constexpr std::size_t kRequestDigits = 16;
/// What stands for a process without a region.
constexpr std::string_view kNoRegion = "-";

/// Lets a scope keep notes.
class Held final : public Attachment {
 public:
  explicit Held(std::shared_ptr<Notes> held) : notes(std::move(held)) {}
  [[nodiscard]] std::shared_ptr<const Attachment> Joined(const Attachment& later) const override {
    const auto& others = static_cast<const Held&>(later).notes;
    if (others != notes) notes->Take(others->Items(std::nullopt));
    return std::make_shared<Held>(notes);
  }
  [[nodiscard]] std::shared_ptr<const Attachment> Branched(const std::set<std::string>&) const override {
    return std::make_shared<Held>(notes);
  }

  const std::shared_ptr<Notes> notes;
};

std::uint64_t NumberOf(const Dependency& found) {
  const auto* write = std::get_if<WriteId>(&found);
  const auto* number = write == nullptr ? nullptr : std::get_if<std::uint64_t>(&write->version);
  return number == nullptr ? 0 : *number;
}

/// A guard states no hour.
Dependency Plain(const Dependency& guarded) {
  const auto* write = std::get_if<WriteId>(&guarded);
  return write == nullptr ? guarded : Dependency(WriteId{write->datastore, write->key, write->version});
}

std::string ItemOf(const Dependency& guarded) {
  LineageParts parts;
  if (const auto* write = std::get_if<WriteId>(&guarded)) {
    parts.writes.push_back(*write);
  } else {
    parts.promises.push_back(std::get<Promise>(guarded));
  }
  const std::string text = Lineage(parts).Serialize();
  return text.substr(text.find('~') + 1);
}

std::optional<Dependency> GuardedBy(const std::string& item) {
  if (item.empty() || std::string_view("urkp").find(item[0]) == std::string_view::npos) return std::nullopt;
  const auto lineage = Lineage::TryDeserialize("1~" + item);
  if (!lineage) return std::nullopt;
  const auto writes = lineage->writes();
  const auto promises = lineage->promises();
  if (writes.size() + promises.size() != 1) return std::nullopt;
  return writes.empty() ? Dependency(promises.front()) : Dependency(writes.front());
}

std::string TokenOf(const std::string& region) {
  if (region.empty()) return std::string(kNoRegion);
  std::string token;
  grammar::AppendBase64(token, region);
  return token;
}

/// The region that a token stands for, empty for none; none where it is malformed.
std::optional<std::string> RegionOf(std::string_view token) {
  if (token == kNoRegion) return "";
  std::string region(token.size() * 3 / 4, '\0');
  if (token.empty() || !grammar::ParseBase64(token, region.data()) || !grammar::IsUtf8(region)) return std::nullopt;
  return region;
}

bool IsRequest(std::string_view item) {
  if (item.size() != kRequest.size() + kRequestDigits || !text::StartsWith(item, kRequest)) return false;
  return item.find_first_not_of("0123456789abcdef", kRequest.size()) == std::string_view::npos;
}

}  // namespace

std::shared_ptr<Notes> Notes::Of(const Scope& scope) {
  Scope::Inside& inside = scope.inside();
  if (const auto held = inside.Attached<Held>()) return held->notes;
  auto made = std::make_shared<Notes>();
  inside.Attach(std::make_shared<Held>(made));
  const auto held = inside.Attached<Held>();
  return held ? held->notes : made;  // A scope that was stopped keeps nothing.
}

const std::string& Notes::Drawn() {
  if (request_.empty()) request_ = RandomHex(kRequestDigits);
  return request_;
}

std::string Notes::Request() {
  const std::lock_guard guard(lock_);
  return Drawn();
}

void Notes::Take(const std::set<std::string>& items) {
  const std::lock_guard guard(lock_);
  for (const std::string& item : items) {  // Sorted: the smallest request counts.
    if (IsRequest(item)) {
      if (request_.empty()) request_ = item.substr(kRequest.size());
      continue;
    }
    const std::size_t dot = item.find('.');
    if (!text::StartsWith(item, kGuard) || dot == std::string::npos) continue;
    const auto region = RegionOf(std::string_view(item).substr(kGuard.size(), dot - kGuard.size()));
    const auto guarded = GuardedBy(item.substr(dot + 1));
    if (region && guarded) Add(*region, *guarded);
  }
}

void Notes::Guard(const std::string& region, const Dependency& guarded) {
  const std::lock_guard guard(lock_);
  Add(region, guarded);
}

void Notes::Add(const std::string& region, const Dependency& guarded) {
  const auto [held, added] = guards_.try_emplace(LogOf(region, guarded), Plain(guarded));
  if (!added && NumberOf(held->second) < NumberOf(guarded)) held->second = Plain(guarded);
}

bool Notes::Covers(const std::string& region, const Dependency& wanted) const {
  const std::lock_guard guard(lock_);
  const auto held = guards_.find(LogOf(region, wanted));
  return held != guards_.end() && NumberOf(held->second) >= NumberOf(wanted);
}

std::set<std::string> Notes::Items(const std::optional<std::set<std::string>>& egress) {
  const std::lock_guard guard(lock_);
  std::set<std::string> items{std::string(kRequest) + Drawn()};
  for (const auto& [log, guarded] : guards_) {
    if (egress && egress->count(DatastoreOf(guarded)) == 0) continue;
    items.insert(std::string(kGuard) + TokenOf(std::get<0>(log)) + "." + ItemOf(guarded));
  }
  return items;
}

Notes::Log Notes::LogOf(const std::string& region, const Dependency& found) {
  if (const auto* promise = std::get_if<Promise>(&found)) return {region, promise->datastore, "", "p" + promise->id};
  const auto& write = std::get<WriteId>(found);
  const auto* opaque = std::get_if<std::string>(&write.version);
  return {region, write.datastore, write.key, opaque == nullptr ? "" : "o" + *opaque};
}

}  // namespace antipode::dry_run
