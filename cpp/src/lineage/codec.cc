#include "lineage/codec.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "lineage/data.h"
#include "lineage/grammar.h"

namespace antipode::codec {
namespace {

using grammar::ParseNumber;
using grammar::ParseToken;

constexpr std::string_view kItemFault = "lineage_item";
constexpr std::size_t kUuidText = 36;
constexpr std::size_t kUuidChars = 22;
constexpr std::size_t kReplicationId = 40;
constexpr std::size_t kReplicationIdChars = 27;
/// About what a write takes: its item is written to a text that has as much room.
constexpr std::size_t kItemChars = 48;
constexpr std::size_t kHourDigits = 5;
constexpr std::size_t kExpiryDigits = 8;

bool IsForeignDigit(char c) { return c == '0' || (c >= '2' && c <= '9'); }

/// Splits at the first dot: what is before it, and what follows; the second has no value where there is none.
std::pair<std::string_view, std::optional<std::string_view>> Cut(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, dot), text.substr(dot + 1)};
}

/// Whether what follows a UUID in a key can be written as it is.
bool IsSuffix(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return grammar::IsWord(c) || c == '/' || c == ':'; });
}

void AppendSwapped(std::string& text, std::string_view added, char from, char to, char and_from, char and_to) {
  for (const char c : added) text.push_back(c == from ? to : c == and_from ? and_to : c);
}

/// The key of a write of this kind, or none.
std::optional<std::string> Key(char kind, std::string_view last) {
  if (kind == 'k') return ParseToken(last, true);
  std::string key;
  if (kind == 'r') {
    std::array<char, kReplicationId / 2> bytes{};
    if (last.size() != kReplicationIdChars || !grammar::ParseBase64(last, bytes.data())) return std::nullopt;
    key.reserve(kReplicationId);
    grammar::AppendHex(key, {bytes.data(), bytes.size()});
    return key;
  }
  grammar::UuidBytes bytes{};
  if (last.size() < kUuidChars || !grammar::ParseBase64(last.substr(0, kUuidChars), bytes.data())) return std::nullopt;
  const std::string_view suffix = last.substr(kUuidChars);
  if (!std::all_of(suffix.begin(), suffix.end(), grammar::IsChar)) return std::nullopt;
  key.reserve(kUuidText + suffix.size());
  grammar::AppendUuid(key, bytes);
  AppendSwapped(key, suffix, '.', '/', '-', ':');
  return key;
}

std::optional<Version> ParseVersion(std::string_view text) {
  if (!text.empty() && text[0] == '_') {
    auto opaque = ParseToken(text.substr(1));
    if (!opaque) return std::nullopt;
    return Version(*std::move(opaque));
  }
  const auto number = ParseNumber(text);
  if (!number) return std::nullopt;
  return Version(*number);
}

struct Stamp {
  std::uint64_t written_hour = 0;
  Version version;
};

std::optional<Stamp> ParseStamp(std::string_view text, std::uint64_t header_h) {
  Stamp stamp{header_h, {}};
  const std::size_t dash = text.empty() || text[0] == '_' ? std::string_view::npos : text.find('-');
  if (dash != std::string_view::npos) {
    if (header_h == 0) return std::nullopt;
    if (dash == 0) {
      stamp.written_hour = 0;
    } else {
      const auto age_h = ParseNumber(text.substr(0, dash));
      if (!age_h || *age_h >= header_h) return std::nullopt;
      stamp.written_hour = header_h - *age_h;
    }
    text.remove_prefix(dash + 1);
  }
  auto version = ParseVersion(text);
  if (!version) return std::nullopt;
  stamp.version = *std::move(version);
  return stamp;
}

bool AddWrite(Lineage::Data& data, std::string_view item, std::uint64_t header_h) {
  const char kind = item[0];
  const bool covering = kind < 'a';
  const auto [name_text, after_name] = Cut(item.substr(1));
  if (!after_name) return false;
  const auto [stamp_text, last] = Cut(*after_name);
  if (!last) return false;
  auto name = ParseToken(name_text);
  auto stamp = ParseStamp(stamp_text, header_h);
  auto key = Key(static_cast<char>(kind | 0x20), *last);
  if (!name || name->empty() || !stamp || !key) return false;
  data.Add(Entry{{*std::move(name), *std::move(key), std::move(stamp->version), stamp->written_hour, covering}, false});
  return true;
}

bool AddMark(Lineage::Data& data, std::string_view item) {
  const auto [reason_text, subject_text] = Cut(item.substr(1));
  if (!subject_text) return false;
  auto reason = ParseToken(reason_text);
  auto subject = ParseToken(*subject_text, true);
  if (!reason || !subject) return false;
  data.incomplete.insert({*std::move(subject), *std::move(reason)});
  return true;
}

bool AddPromise(Lineage::Data& data, std::string_view item) {
  const auto [name_text, after_name] = Cut(item.substr(1));
  if (!after_name) return false;
  const auto [expiry, id_text] = Cut(*after_name);
  if (!id_text || expiry.size() > kExpiryDigits || id_text->size() != kUuidChars) return false;
  auto name = ParseToken(name_text);
  const auto expires_s = ParseNumber(expiry);
  grammar::UuidBytes id{};
  if (!name || name->empty() || !expires_s || !grammar::ParseBase64(*id_text, id.data())) return false;
  std::string digits;
  grammar::AppendHex(digits, {id.data(), id.size()});
  data.Add(Promise{*std::move(name), std::move(digits), *expires_s});
  return true;
}

bool AddOpen(Lineage::Data& data, std::string_view item) {
  const auto open = ParseNumber(item.substr(1));
  if (!open) return false;
  data.open_branches = std::max(data.open_branches, *open);
  return true;
}

/// Whether `item` is a carried text, whole.
bool IsCarried(std::string_view item) {
  const auto [number_text, text] = Cut(item.substr(1));
  const auto number = ParseNumber(number_text);
  if (!number || !text || text->empty() || !IsForeignDigit((*text)[0]) || text->size() > grammar::kMaxForeign) {
    return false;
  }
  const auto is_char = [](char c) { return grammar::IsChar(c) || c == '~'; };
  const auto tildes = static_cast<std::uint64_t>(std::count(text->begin(), text->end(), '~'));
  return *number == tildes && std::all_of(text->begin(), text->end(), is_char);
}

/// Puts one item into `data`; false where it does not follow its grammar.
bool AddItem(Lineage::Data& data, std::string_view item, std::uint64_t header_h, bool is_last) {
  if (item.empty()) return false;
  switch (item[0]) {
    case 'u':
    case 'U':
    case 'r':
    case 'R':
    case 'k':
    case 'K':
      return AddWrite(data, item, header_h);
    case 'i':
      return AddMark(data, item);
    case 'p':
      return AddPromise(data, item);
    case 'o':
      return AddOpen(data, item);
    case 'z':
      if (!IsCarried(item)) return false;
      break;
    case 'h':
      return is_last;  // Authenticates what was received; it is not sent on.
    default:
      break;
  }
  data.unknown.emplace(item);
  return true;
}

/// Where the item that begins at `begin` ends: at its `~`, or after those of the text that it carries.
std::size_t EndOfItem(std::string_view text, std::size_t begin) {
  std::size_t end = std::min(text.find('~', begin), text.size());
  if (begin == end || text[begin] != 'z') return end;
  const auto [number_text, carried] = Cut(text.substr(begin + 1, end - begin - 1));
  const auto number = ParseNumber(number_text);
  if (!carried || !number) return end;
  std::size_t last = end;
  for (std::uint64_t taken = 0; taken < *number; ++taken) {
    if (last >= text.size()) return end;  // There are not as many.
    last = std::min(text.find('~', last + 1), text.size());
  }
  return last;
}

DecodeFault Fault(std::string_view code, std::string message, std::size_t offset) {
  return {code, std::move(message), offset};
}

}  // namespace

bool IsUnknownItem(std::string_view item) {
  constexpr std::string_view kKnown = "uUrRkKipoh";
  if (item.empty() || kKnown.find(item[0]) != std::string_view::npos) return false;
  if (item[0] == 'z') return IsCarried(item);
  return std::all_of(item.begin(), item.end(), grammar::IsChar);
}

std::variant<Lineage::Data, DecodeFault> Decode(std::string_view text) {
  const bool foreign = !text.empty() && IsForeignDigit(text[0]);
  if (text.size() > (foreign ? grammar::kMaxForeign : grammar::kMaxCharacters)) {
    return Fault("lineage_too_long", "a lineage has at most 65536 characters, this text " + std::to_string(text.size()),
                 0);
  }
  const auto stranger =
      std::find_if_not(text.begin(), text.end(), [](char c) { return grammar::IsChar(c) || c == '~'; });
  if (stranger != text.end()) {
    return Fault("lineage_alphabet", "a character is not of a lineage",
                 static_cast<std::size_t>(stranger - text.begin()));
  }
  Lineage::Data data;
  if (foreign) {
    const auto tildes = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '~'));
    std::string carried = "z";
    grammar::AppendNumber(carried, tildes);
    data.unknown.insert(carried.append(".").append(text));
    return data;
  }
  const std::size_t header_end = std::min(text.find('~'), text.size());
  const std::string_view header = text.substr(0, header_end);
  std::uint64_t header_h = 0;
  if (header.empty() || header[0] != '1' || header.size() > kHourDigits + 1) {
    return Fault("lineage_header", "the text begins with no header of a lineage of version 1", 0);
  }
  if (header.size() > 1) {
    const auto hour = ParseNumber(header.substr(1));
    if (!hour || *hour == 0) return Fault("lineage_header", "the header's hour is no number", 1);
    header_h = *hour;
  }
  std::optional<std::size_t> malformed;
  std::size_t items = 0;
  for (std::size_t end = header_end; end < text.size();) {
    const std::size_t begin = end + 1;
    end = EndOfItem(text, begin);
    if (++items > grammar::kMaxItems) {
      return Fault("lineage_too_many", "a lineage has at most 4096 items, this text more", begin);
    }
    if (!malformed && !AddItem(data, text.substr(begin, end - begin), header_h, end == text.size())) malformed = begin;
  }
  if (malformed) return Fault(kItemFault, "an item is malformed", std::min(*malformed, text.size()));
  return data;
}

std::uint64_t NewestHour(const Lineage::Data& data) {
  std::uint64_t newest_h = 0;
  for (const auto& [slot, kept] : data.slots) {
    for (const auto* each : {&kept.exact, &kept.covering}) {
      if (*each) newest_h = std::max(newest_h, (*each)->write.written_hour);
    }
  }
  return newest_h;
}

std::string Header(std::uint64_t newest_h) {
  std::string header = "1";
  if (newest_h != 0) grammar::AppendNumber(header, newest_h);
  return header;
}

namespace {

void AppendItem(std::string& text, const WriteId& write, std::uint64_t newest_h) {
  const auto uuid = grammar::ParseUuid(write.key);
  const bool packed = uuid && IsSuffix(std::string_view(write.key).substr(kUuidText));
  const auto bytes = write.key.size() == kReplicationId ? grammar::ParseHex(write.key) : std::nullopt;
  const char kind = packed ? 'u' : bytes ? 'r' : 'k';
  text.push_back(write.covering ? static_cast<char>(kind & ~0x20) : kind);
  grammar::AppendToken(text, write.datastore);
  text.push_back('.');
  if (write.written_hour != newest_h) {
    if (write.written_hour != 0) grammar::AppendNumber(text, newest_h - write.written_hour);
    text.push_back('-');
  }
  if (const auto* number = std::get_if<std::uint64_t>(&write.version)) {
    grammar::AppendNumber(text, *number);
  } else {
    text.push_back('_');
    grammar::AppendToken(text, std::get<std::string>(write.version));
  }
  text.push_back('.');
  if (packed) {
    grammar::AppendBase64(text, {uuid->data(), uuid->size()});
    AppendSwapped(text, std::string_view(write.key).substr(kUuidText), '/', '.', ':', '-');
  } else if (bytes) {
    grammar::AppendBase64(text, *bytes);
  } else {
    grammar::AppendToken(text, write.key, true);
  }
}

void AppendItem(std::string& text, const Incomplete& mark) {
  text.push_back('i');
  grammar::AppendToken(text, mark.reason);
  text.push_back('.');
  grammar::AppendToken(text, mark.subject, true);
}

void AppendItem(std::string& text, const Promise& promise) {
  text.push_back('p');
  grammar::AppendToken(text, promise.datastore);
  text.push_back('.');
  grammar::AppendNumber(text, promise.expires_s);
  text.push_back('.');
  grammar::AppendBase64(text, *grammar::ParseHex(promise.id));
}

template <typename... Parts>
std::string ItemOf(const Parts&... parts) {
  std::string item;
  AppendItem(item, parts...);
  return item;
}

/// Items, which are written one after another and then sorted.
class Items {
 public:
  explicit Items(std::size_t most) {
    text_.reserve(most * kItemChars);
    ends_.reserve(most);
  }

  template <typename... Parts>
  void Add(const Parts&... parts) {
    AppendItem(text_, parts...);
    ends_.push_back(text_.size());
  }
  void AddText(std::string_view item) {
    text_.append(item);
    ends_.push_back(text_.size());
  }

  /// After a header, each after its `~`.
  [[nodiscard]] std::string Behind(std::string header) const {
    std::vector<std::string_view> items;
    items.reserve(ends_.size());
    std::size_t begin = 0;
    for (const std::size_t end : ends_) {
      items.push_back(std::string_view(text_).substr(begin, end - begin));
      begin = end;
    }
    std::sort(items.begin(), items.end());
    header.reserve(header.size() + text_.size() + items.size());
    for (const std::string_view item : items) header.append("~").append(item);
    return header;
  }

 private:
  std::string text_;
  std::vector<std::size_t> ends_;
};

}  // namespace

std::string Item(const WriteId& write, std::uint64_t newest_h) { return ItemOf(write, newest_h); }
std::string Item(const Incomplete& mark) { return ItemOf(mark); }
std::string Item(const Promise& promise) { return ItemOf(promise); }
std::string OpenItem(std::uint64_t open_branches) {
  std::string item = "o";
  grammar::AppendNumber(item, open_branches);
  return item;
}

std::string Encode(const Lineage::Data& data) {
  const std::uint64_t newest_h = NewestHour(data);
  Items items(data.slots.size() + data.incomplete.size() + data.promises.size() + data.unknown.size() + 1);
  for (const std::string& item : data.unknown) items.AddText(item);
  for (const auto& [slot, kept] : data.slots) {
    for (const auto* each : {&kept.exact, &kept.covering}) {
      if (*each) items.Add((*each)->write, newest_h);
    }
  }
  for (const Incomplete& mark : data.incomplete) items.Add(mark);
  for (const Promise& promise : data.Promises()) items.Add(promise);
  if (data.open_branches != 0) items.AddText(OpenItem(data.open_branches));
  return items.Behind(Header(newest_h));
}

std::string WithMark(std::string_view text, const Incomplete& mark) {
  const std::string item = Item(mark);
  std::size_t end = std::min(text.find('~'), text.size());
  while (end < text.size()) {
    const std::size_t next = EndOfItem(text, end + 1);
    const std::string_view each = text.substr(end + 1, next - end - 1);
    if (each == item) return std::string(text);
    if (item < each) break;
    end = next;
  }
  std::string marked;
  marked.reserve(text.size() + item.size() + 1);
  return marked.append(text.substr(0, end)).append("~").append(item).append(text.substr(end));
}

}  // namespace antipode::codec
