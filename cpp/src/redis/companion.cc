#include "redis/companion.h"

#include <array>
#include <cstdint>

#include "request/untrusted_text.h"

namespace antipode::redis {
namespace {

constexpr std::string_view kDeleted = "-";
constexpr std::size_t kDigits = 16;
constexpr std::size_t kBlock = 64;

std::uint32_t Rotated(std::uint32_t word, int by) { return (word << by) | (word >> (32 - by)); }

using Digest = std::array<std::uint32_t, 5>;

/// One block of SHA-1 (FIPS 180-4, 6.1.2).
void Take(Digest& sum, std::string_view block) {
  std::array<std::uint32_t, 80> words{};
  for (std::size_t i = 0; i < kBlock; ++i) words[i / 4] = words[i / 4] << 8 | static_cast<std::uint8_t>(block[i]);
  for (std::size_t i = 16; i < words.size(); ++i) {
    words[i] = Rotated(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  }
  auto [a, b, c, d, e] = sum;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::uint32_t f = (b & c) | (~b & d);
    std::uint32_t k = 0x5a827999;
    if (i >= 60) {
      f = b ^ c ^ d;
      k = 0xca62c1d6;
    } else if (i >= 40) {
      f = (b & c) | (b & d) | (c & d);
      k = 0x8f1bbcdc;
    } else if (i >= 20) {
      f = b ^ c ^ d;
      k = 0x6ed9eba1;
    }
    const std::uint32_t next = Rotated(a, 5) + f + e + k + words[i];
    e = d;
    d = c;
    c = Rotated(b, 30);
    b = a;
    a = next;
  }
  sum = {sum[0] + a, sum[1] + b, sum[2] + c, sum[3] + d, sum[4] + e};
}

/// The first digits of the SHA-1 of a text.
std::string DigestOf(std::string_view text) {
  Digest sum{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  const std::uint64_t bits = static_cast<std::uint64_t>(text.size()) * 8;
  while (text.size() >= kBlock) {
    Take(sum, text.substr(0, kBlock));
    text.remove_prefix(kBlock);
  }
  std::string last(text);
  last.push_back('\x80');
  while (last.size() % kBlock != kBlock - 8) last.push_back('\0');
  for (int shift = 56; shift >= 0; shift -= 8) last.push_back(static_cast<char>(bits >> shift));
  for (std::size_t at = 0; at < last.size(); at += kBlock) Take(sum, std::string_view(last).substr(at, kBlock));
  std::string digits;
  for (std::size_t i = 0; i < kDigits; ++i) {
    digits.push_back("0123456789abcdef"[sum[i / 8] >> (28 - 4 * (i % 8)) & 15]);
  }
  return digits;
}

bool Fits(const Text& value, Extent shown, std::string_view mark) {
  if (shown == Extent::kNothing) return true;
  if (shown == Extent::kPart) return mark != kDeleted;
  return mark == (value ? DigestOf(*value) : kDeleted);
}

}  // namespace

std::string_view NameOf(Match match) {
  static constexpr std::array<std::string_view, 4> kNames{"own", "companion_absent", "foreign", "unreadable"};
  return kNames[static_cast<std::size_t>(match)];
}

std::string Packed(std::optional<std::string_view> value, std::string_view lineage) {
  return (value ? DigestOf(*value) : std::string(kDeleted)) + "|" + std::string(lineage);
}

std::pair<Lineage, Match> Unpacked(const Text& value, Extent shown, const Text& companion,
                                   const std::string& datastore) {
  if (!companion) {
    const bool nothing = shown == Extent::kNothing || (shown == Extent::kWhole && !value);
    return {Lineage(), nothing ? Match::kOwn : Match::kAbsent};
  }
  const std::string_view text = *companion;
  const std::size_t bar = text.find('|');
  if (bar == std::string_view::npos) return {Readable(datastore, "?"), Match::kUnreadable};
  if (!Fits(value, shown, text.substr(0, bar))) return {Lineage(), Match::kForeign};
  const std::string_view lineage = text.substr(bar + 1);
  const Match match = Lineage::TryDeserialize(lineage) ? Match::kOwn : Match::kUnreadable;
  return {Readable(datastore, lineage), match};
}

}  // namespace antipode::redis
