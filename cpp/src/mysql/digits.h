// Numbers as servers write them.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace antipode::mysql {

/// The number of at most so many decimal digits, and nothing else; none where the text is none.
inline std::optional<std::uint64_t> NumberIn(std::string_view text, std::size_t most = 20) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || text.size() > most || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

}  // namespace antipode::mysql
