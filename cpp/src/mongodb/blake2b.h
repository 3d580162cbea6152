// The digest by which a value is told from one that overwrote it (RFC 7693).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace antipode::mongodb {

/// BLAKE2b of so many bytes, at most 64, without a key.
std::string Blake2b(std::string_view data, std::size_t size);

}  // namespace antipode::mongodb
