#include "propagation/headers.h"

#include <algorithm>

#include "antipode/text.h"
#include "runtime/observers.h"

namespace antipode {
namespace {

/// What the W3C lets a platform limit all baggage to, and to how many members.
constexpr std::size_t kMaxHeaderBytes = 8'192;
constexpr std::size_t kMaxMembers = 64;

/// Calls with each member of a header, until that says false.
template <typename Visit>
void EachMember(std::string_view baggage, const Visit& visit) {
  while (true) {
    const std::size_t end = std::min(baggage.find(','), baggage.size());
    if (!visit(baggage.substr(0, end)) || end == baggage.size()) return;
    baggage.remove_prefix(end + 1);
  }
}

bool IsOurs(std::string_view member) { return text::Trimmed(member.substr(0, member.find('='))) == kMember; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// Percent-decoded; what is no encoding stays, and makes the text unreadable.
std::string Decoded(std::string_view value) {
  if (value.find('%') == std::string_view::npos) return std::string(value);
  std::string decoded;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const int high = value[i] == '%' && i + 2 < value.size() ? HexDigit(value[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(value[i + 2]) : -1;
    if (low < 0) {
      decoded += value[i];
      continue;
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

/// The text of our member.
std::string TextOf(std::string_view member) {
  const std::size_t equals = member.find('=');
  const std::string_view value = equals == std::string_view::npos ? "" : member.substr(equals + 1);
  return Decoded(text::Trimmed(value.substr(0, value.find(';'))));
}

}  // namespace

std::vector<std::string_view> ValuesOf(const Headers& headers, std::string_view name) {
  std::vector<std::string_view> values;
  for (const auto& [each, value] : headers) {
    if (each.size() == name.size() && text::Lower(each) == name) values.emplace_back(value);
  }
  return values;
}

void Replace(Headers& headers, std::string_view name, const std::optional<std::string>& value) {
  bool put = !value.has_value();
  for (auto each = headers.begin(); each != headers.end();) {
    if (text::Lower(each->first) != name) {
      ++each;
    } else if (put) {
      each = headers.erase(each);
    } else {
      each->second = *value;
      put = true;
      ++each;
    }
  }
  if (!put) headers.emplace_back(name, *value);
}

std::vector<std::string> Members(const std::vector<std::string_view>& baggage) {
  std::vector<std::string> texts;
  for (const std::string_view header : baggage) {
    EachMember(header, [&](std::string_view member) {
      if (IsOurs(member)) texts.push_back(texts.size() == kMaxMembers ? "" : TextOf(member));
      return texts.size() <= kMaxMembers;
    });
    if (texts.size() > kMaxMembers) break;  // The last one is no lineage: it will be marked unreadable.
  }
  return texts;
}

bool HasMember(std::string_view baggage) {
  bool found = false;
  EachMember(baggage, [&](std::string_view member) { return !(found = found || IsOurs(member)); });
  return found;
}

std::optional<std::string> WithoutMember(std::string_view baggage) {
  std::string kept;
  bool first = true;
  bool found = false;
  EachMember(baggage, [&](std::string_view member) {
    if (IsOurs(member)) {
      found = true;
      return true;
    }
    if (!first) kept += ',';
    kept += member;
    first = false;
    return true;
  });
  return found ? std::optional(std::move(kept)) : std::nullopt;
}

std::string WithMember(std::string_view baggage, std::string_view text) {
  std::string joined = std::string(kMember) + "=" + std::string(text);
  for (const std::string_view member : text::Split(baggage, ',')) {
    if (IsOurs(member) || text::Trimmed(member).empty()) continue;
    if (joined.size() + member.size() + 1 > kMaxHeaderBytes) {
      Count("baggage_over_limit");
      WarnOnce("baggage_over_limit", "", "", "baggage exceeds 8192 bytes: members after that are not sent");
      break;
    }
    joined += ',';
    joined += member;
  }
  return joined;
}

void Strip(Headers& headers) {
  Replace(headers, kResponseHeader, std::nullopt);
  Replace(headers, kSentHeader, std::nullopt);
  for (auto each = headers.begin(); each != headers.end();) {
    const auto kept = text::Lower(each->first) == kBaggage ? WithoutMember(each->second) : std::nullopt;
    if (kept && kept->empty()) {
      each = headers.erase(each);
      continue;
    }
    if (kept) each->second = *kept;
    ++each;
  }
}

}  // namespace antipode
