#include "lineage/codec.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "lineage/grammar.h"

namespace antipode::codec {
namespace {

using grammar::ParseNumber;
using grammar::ParseToken;

constexpr std::string_view kItemFault = "lineage_item";
constexpr std::size_t kUuidText = 36;
constexpr std::size_t kUuidChars = 22;
constexpr std::size_t kReplicationId = 40;
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

std::string Swapped(std::string_view text, char from, char to, char and_from, char and_to) {
  std::string swapped(text);
  for (char& c : swapped) c = c == from ? to : c == and_from ? and_to : c;
  return swapped;
}

/// The key of a write of this kind, or none.
std::optional<std::string> Key(char kind, std::string_view last) {
  if (kind == 'k') return ParseToken(last, true);
  const std::size_t packed = kind == 'u' ? kUuidChars : 27;
  if (last.size() < packed || (kind == 'r' && last.size() > packed)) return std::nullopt;
  const auto bytes = grammar::ParseBase64(last.substr(0, packed));
  if (!bytes) return std::nullopt;
  if (kind == 'r') return grammar::Hex(*bytes);
  const std::string_view suffix = last.substr(packed);
  if (!std::all_of(suffix.begin(), suffix.end(), grammar::IsChar)) return std::nullopt;
  return grammar::UuidOf(grammar::Hex(*bytes)) + Swapped(suffix, '.', '/', '-', ':');
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
  std::uint64_t minted_h = 0;
  Version version;
};

std::optional<Stamp> ParseStamp(std::string_view text, std::uint64_t header_h) {
  Stamp stamp{header_h, {}};
  const std::size_t dash = text.empty() || text[0] == '_' ? std::string_view::npos : text.find('-');
  if (dash != std::string_view::npos) {
    if (header_h == 0) return std::nullopt;
    if (dash == 0) {
      stamp.minted_h = 0;
    } else {
      const auto age_h = ParseNumber(text.substr(0, dash));
      if (!age_h || *age_h >= header_h) return std::nullopt;
      stamp.minted_h = header_h - *age_h;
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
  data.Add({*std::move(name), *std::move(key), std::move(stamp->version), stamp->minted_h, covering}, false);
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
  const auto id = grammar::ParseBase64(*id_text);
  if (!name || name->empty() || !expires_s || !id) return false;
  data.Add(Promise{*std::move(name), grammar::Hex(*id), *expires_s});
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
    data.unknown.insert("z" + grammar::Number(tildes) + "." + std::string(text));
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
  std::vector<std::pair<std::size_t, std::size_t>> items;
  for (std::size_t end = header_end; end < text.size();) {
    const std::size_t begin = end + 1;
    end = EndOfItem(text, begin);
    items.emplace_back(begin, end);
    if (items.size() > grammar::kMaxItems) {
      return Fault("lineage_too_many", "a lineage has at most 4096 items, this text more", begin);
    }
  }
  for (const auto& [begin, end] : items) {
    if (!AddItem(data, text.substr(begin, end - begin), header_h, end == text.size())) {
      return Fault(kItemFault, "an item is malformed", std::min(begin, text.size()));
    }
  }
  return data;
}

std::uint64_t NewestHour(const Lineage::Data& data) {
  std::uint64_t newest_h = 0;
  for (const auto& [slot, kept] : data.slots) {
    for (const auto* each : {&kept.exact, &kept.covering}) {
      if (*each) newest_h = std::max(newest_h, (*each)->write.minted_h);
    }
  }
  return newest_h;
}

std::string Header(std::uint64_t newest_h) { return newest_h == 0 ? "1" : "1" + grammar::Number(newest_h); }

std::string Item(const WriteId& write, std::uint64_t newest_h) {
  char kind = 'k';
  std::string last;
  if (grammar::BeginsWithUuid(write.key) && IsSuffix(std::string_view(write.key).substr(kUuidText))) {
    kind = 'u';
    last = grammar::Base64(*grammar::ParseHex(grammar::UuidDigits(write.key))) +
           Swapped(std::string_view(write.key).substr(kUuidText), '/', '.', ':', '-');
  } else if (const auto bytes = grammar::ParseHex(write.key); bytes && write.key.size() == kReplicationId) {
    kind = 'r';
    last = grammar::Base64(*bytes);
  } else {
    last = grammar::Token(write.key, true);
  }
  std::string item{write.covering ? static_cast<char>(kind & ~0x20) : kind};
  item.append(grammar::Token(write.datastore)).push_back('.');
  if (write.minted_h != newest_h) {
    if (write.minted_h != 0) item.append(grammar::Number(newest_h - write.minted_h));
    item.push_back('-');
  }
  if (const auto* number = std::get_if<std::uint64_t>(&write.version)) {
    item.append(grammar::Number(*number));
  } else {
    item.append("_").append(grammar::Token(std::get<std::string>(write.version)));
  }
  return item.append(".").append(last);
}

std::string Item(const Incomplete& mark) {
  return "i" + grammar::Token(mark.reason) + "." + grammar::Token(mark.subject, true);
}

std::string Item(const Promise& promise) {
  return "p" + grammar::Token(promise.datastore) + "." + grammar::Number(promise.expires_s) + "." +
         grammar::Base64(*grammar::ParseHex(promise.id));
}

std::string OpenItem(std::uint64_t open_branches) { return "o" + grammar::Number(open_branches); }

std::string Encode(const Lineage::Data& data) {
  const std::uint64_t newest_h = NewestHour(data);
  std::vector<std::string> items(data.unknown.begin(), data.unknown.end());
  items.reserve(data.MostItems());
  for (const auto& [slot, kept] : data.slots) {
    for (const auto* each : {&kept.exact, &kept.covering}) {
      if (*each) items.push_back(Item((*each)->write, newest_h));
    }
  }
  for (const Incomplete& mark : data.incomplete) items.push_back(Item(mark));
  for (const Promise& promise : data.Promises()) items.push_back(Item(promise));
  if (data.open_branches != 0) items.push_back(OpenItem(data.open_branches));
  std::sort(items.begin(), items.end());
  std::string text = Header(newest_h);
  for (const std::string& item : items) text.append("~").append(item);
  return text;
}

}  // namespace antipode::codec
