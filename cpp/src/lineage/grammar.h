// Numbers, tokens and packed bytes of the text: what both directions of the codec share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace antipode::grammar {

inline constexpr std::size_t kMaxCharacters = 65'536;
inline constexpr std::size_t kMaxForeign = 65'528;
inline constexpr std::size_t kMaxItems = 4'096;
/// `antipode=`
inline constexpr std::size_t kMemberBytes = 9;

constexpr bool IsAlnum(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
/// ALPHA, DIGIT or `_`: how a literal begins.
constexpr bool IsWord(char c) { return IsAlnum(c) || c == '_'; }
/// `char` of the grammar, and whether each byte is one: every byte of a text is asked.
inline constexpr auto kChars = [] {
  std::array<bool, 256> chars{};
  for (std::size_t byte = 0; byte < chars.size(); ++byte) {
    const auto c = static_cast<char>(byte);
    chars[byte] = IsWord(c) || c == '.' || c == '-';
  }
  return chars;
}();
constexpr bool IsChar(char c) { return kChars[static_cast<unsigned char>(c)]; }

/// Whether a text is of Unicode scalar values, in UTF-8.
bool IsUtf8(std::string_view text);

/// The number that a text is: no leading zeros, at most 13 digits and at most 2^64 - 1.
std::optional<std::uint64_t> ParseNumber(std::string_view text);

// What is written goes to the end of a text, and what is read of a known size to where the caller has it: a lineage is
// read and written at each call, without a string for each step.

/// A number in base 36.
void AppendNumber(std::string& text, std::uint64_t value);

/// Base64 of RFC 4648 section 5, without padding.
void AppendBase64(std::string& text, std::string_view bytes);
/// Writes the bytes, three for four characters; false where a text is not the spelling that encodes them.
bool ParseBase64(std::string_view text, char* bytes);

/// A token, or with `dotted` the last field of an item.
void AppendToken(std::string& text, std::string_view value, bool dotted = false);
std::optional<std::string> ParseToken(std::string_view text, bool dotted = false);

/// The bytes of so many lower-case hexadecimal digits; none where they are not.
std::optional<std::string> ParseHex(std::string_view digits);
void AppendHex(std::string& text, std::string_view bytes);

using UuidBytes = std::array<char, 16>;
/// Of the UUID in lower case with which a text begins; none where it does not.
std::optional<UuidBytes> ParseUuid(std::string_view text);
void AppendUuid(std::string& text, const UuidBytes& bytes);

}  // namespace antipode::grammar
