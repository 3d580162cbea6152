#include "redis/companion.h"

#include <openssl/evp.h>

#include <array>

#include "antipode/stored.h"

namespace antipode::redis {
namespace {

constexpr std::string_view kDeleted = "-";
constexpr std::size_t kDigits = 16;

/// The first digits of the SHA-1 of a text.
std::string DigestOf(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha1(), nullptr);
  std::string digits;
  for (std::size_t i = 0; i < kDigits; ++i) {
    digits.push_back("0123456789abcdef"[digest[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15]);
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
  if (bar == std::string_view::npos) return {StoredLineage(datastore, "?"), Match::kUnreadable};
  if (!Fits(value, shown, text.substr(0, bar))) return {Lineage(), Match::kForeign};
  const std::string_view lineage = text.substr(bar + 1);
  const Match match = Lineage::TryDeserialize(lineage) ? Match::kOwn : Match::kUnreadable;
  return {StoredLineage(datastore, lineage), match};
}

}  // namespace antipode::redis
