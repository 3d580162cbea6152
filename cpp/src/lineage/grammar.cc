#include "lineage/grammar.h"

#include <algorithm>

namespace antipode::grammar {
namespace {

constexpr std::string_view kDigits36 = "0123456789abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kDigits64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::size_t kUuid = 36;
constexpr std::size_t kMaxNumber = 13;

/// The place of each character in an alphabet; -1 where it has none.
constexpr std::array<std::int8_t, 256> Places(std::string_view alphabet) {
  std::array<std::int8_t, 256> places{};
  for (auto& place : places) place = -1;
  for (std::size_t i = 0; i < alphabet.size(); ++i) {
    places[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int8_t>(i);
  }
  return places;
}

constexpr auto kPlaces36 = Places(kDigits36);
constexpr auto kPlaces64 = Places(kDigits64);
constexpr auto kPlacesHex = Places(kHex);

int Place(const std::array<std::int8_t, 256>& places, char c) { return places[static_cast<unsigned char>(c)]; }

bool IsDash(std::size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

bool IsLiteral(std::string_view text, bool dotted) {
  if (text.empty() || !(IsWord(text[0]) || (dotted && text[0] == '.'))) return false;
  return std::all_of(text.begin(), text.end(), [dotted](char c) { return IsChar(c) && (dotted || c != '.'); });
}

}  // namespace

bool IsUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const std::size_t more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || i + more >= text.size()) return false;
    std::uint32_t scalar = lead & (0x3FU >> more);
    for (std::size_t j = 1; j <= more; ++j) {
      const auto next = static_cast<unsigned char>(text[i + j]);
      if ((next & 0xC0U) != 0x80U) return false;
      scalar = (scalar << 6U) | (next & 0x3FU);
    }
    constexpr std::array<std::uint32_t, 4> kLeast = {0, 0x80, 0x800, 0x10000};
    if (scalar < kLeast[more] || scalar > 0x10FFFF || (scalar >= 0xD800 && scalar <= 0xDFFF)) return false;
    i += more + 1;
  }
  return true;
}

void AppendNumber(std::string& text, std::uint64_t value) {
  std::array<char, kMaxNumber> digits{};
  std::size_t begin = digits.size();
  do {
    digits[--begin] = kDigits36[value % 36];
    value /= 36;
  } while (value != 0);
  text.append(digits.data() + begin, digits.size() - begin);
}

std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  if (text.empty() || text.size() > kMaxNumber || (text[0] == '0' && text.size() > 1)) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    const int digit = Place(kPlaces36, c);
    if (digit < 0) return std::nullopt;
    const auto added = static_cast<std::uint64_t>(digit);
    if (value > (UINT64_MAX - added) / 36) return std::nullopt;
    value = value * 36 + added;
  }
  return value;
}

void AppendBase64(std::string& text, std::string_view bytes) {
  const std::size_t begin = text.size();
  text.resize(begin + (bytes.size() * 4 + 2) / 3);
  char* next = text.data() + begin;
  std::uint32_t held = 0;
  unsigned bits = 0;
  for (const char c : bytes) {
    held = (held << 8U) | static_cast<unsigned char>(c);
    bits += 8;
    while (bits >= 6) {
      bits -= 6;
      *next++ = kDigits64[(held >> bits) & 0x3FU];
    }
    held &= (1U << bits) - 1U;
  }
  if (bits != 0) *next = kDigits64[(held << (6U - bits)) & 0x3FU];
}

bool ParseBase64(std::string_view text, char* bytes) {
  if (text.size() % 4 == 1) return false;
  int wrong = 0;  // Below zero once a character has no place.
  const auto four = [&](std::size_t at) {
    std::uint32_t held = 0;
    for (std::size_t i = at; i < at + 4; ++i) {
      const int digit = i < text.size() ? Place(kPlaces64, text[i]) : 0;
      wrong |= digit;
      held = (held << 6U) | (static_cast<std::uint32_t>(digit) & 0x3FU);
    }
    return held;
  };
  std::size_t at = 0;
  for (; at + 4 <= text.size(); at += 4) {
    const std::uint32_t held = four(at);
    *bytes++ = static_cast<char>(held >> 16U);
    *bytes++ = static_cast<char>((held >> 8U) & 0xFFU);
    *bytes++ = static_cast<char>(held & 0xFFU);
  }
  if (at == text.size()) return wrong >= 0;
  const std::uint32_t rest = four(at);
  *bytes++ = static_cast<char>(rest >> 16U);
  const bool two = text.size() - at == 3;
  if (two) *bytes = static_cast<char>((rest >> 8U) & 0xFFU);
  return wrong >= 0 && (rest & (two ? 0xFFU : 0xFFFFU)) == 0;  // Stray bits: another spelling of the same bytes.
}

void AppendToken(std::string& text, std::string_view value, bool dotted) {
  if (IsLiteral(value, dotted)) {
    text.append(value);
    return;
  }
  text.push_back('-');
  if (value.empty()) return;
  const char sigil = value[0] == '@' ? '-' : value[0] == '~' ? '_' : '\0';
  if (sigil != '\0' && IsLiteral(value.substr(1), dotted)) {
    text.append(1, sigil).append(value.substr(1));
  } else {
    AppendBase64(text, value);
  }
}

std::optional<std::string> ParseToken(std::string_view text, bool dotted) {
  if (text.empty() || text[0] != '-') {
    if (!IsLiteral(text, dotted)) return std::nullopt;
    return std::string(text);
  }
  const std::string_view rest = text.substr(1);
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '_')) {
    if (!IsLiteral(rest.substr(1), dotted)) return std::nullopt;
    return std::string{rest[0] == '-' ? '@' : '~'}.append(rest.substr(1));
  }
  std::string bytes(rest.size() * 3 / 4, '\0');
  if (!ParseBase64(rest, bytes.data()) || !IsUtf8(bytes)) return std::nullopt;
  return bytes;
}

std::optional<std::string> ParseHex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(digits.size() / 2);
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = Place(kPlacesHex, digits[i]);
    const int low = Place(kPlacesHex, digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

void AppendHex(std::string& text, std::string_view bytes) {
  for (const char c : bytes) {
    text.push_back(kHex[static_cast<unsigned char>(c) >> 4U]);
    text.push_back(kHex[static_cast<unsigned char>(c) & 0xFU]);
  }
}

std::optional<UuidBytes> ParseUuid(std::string_view text) {
  if (text.size() < kUuid) return std::nullopt;
  UuidBytes bytes{};
  std::size_t at = 0;
  for (char& byte : bytes) {
    if (IsDash(at) && text[at++] != '-') return std::nullopt;
    const int high = Place(kPlacesHex, text[at]);
    const int low = Place(kPlacesHex, text[at + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    byte = static_cast<char>(high * 16 + low);
    at += 2;
  }
  return bytes;
}

void AppendUuid(std::string& text, const UuidBytes& bytes) {
  std::array<char, kUuid> digits{};
  std::size_t at = 0;
  for (const char byte : bytes) {
    if (IsDash(at)) digits[at++] = '-';
    digits[at++] = kHex[static_cast<unsigned char>(byte) >> 4U];
    digits[at++] = kHex[static_cast<unsigned char>(byte) & 0xFU];
  }
  text.append(digits.data(), digits.size());
}

}  // namespace antipode::grammar
