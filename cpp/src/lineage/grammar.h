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
/// `char` of the grammar.
constexpr bool IsChar(char c) { return IsWord(c) || c == '.' || c == '-'; }

/// Whether a text is of Unicode scalar values, in UTF-8.
bool IsUtf8(std::string_view text);

/// A number in base 36.
std::string Number(std::uint64_t value);
/// The number that a text is: no leading zeros, at most 13 digits and at most 2^64 - 1.
std::optional<std::uint64_t> ParseNumber(std::string_view text);

/// Base64 of RFC 4648 section 5, without padding.
std::string Base64(std::string_view bytes);
/// The bytes, only where a text is the spelling that encodes them.
std::optional<std::string> ParseBase64(std::string_view text);

/// A token, or with `dotted` the last field of an item.
std::string Token(std::string_view value, bool dotted = false);
std::optional<std::string> ParseToken(std::string_view text, bool dotted = false);

/// The bytes of so many lower-case hexadecimal digits; none where they are not.
std::optional<std::string> ParseHex(std::string_view digits);
std::string Hex(std::string_view bytes);

/// Whether a text begins with a UUID in lower case.
bool BeginsWithUuid(std::string_view text);
/// The digits of a UUID without its dashes, and back.
std::string UuidDigits(std::string_view uuid);
std::string UuidOf(std::string_view digits);

}  // namespace antipode::grammar
