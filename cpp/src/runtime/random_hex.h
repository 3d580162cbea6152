// Names that are drawn, of promises and of processes.
#pragma once

#include <cstddef>
#include <random>
#include <string>

namespace antipode {

/// So many random hexadecimal digits.
inline std::string RandomHex(std::size_t digits) {
  std::random_device random;
  std::string hex;
  for (std::size_t i = 0; i < digits; ++i) hex += "0123456789abcdef"[random() & 0xFU];
  return hex;
}

}  // namespace antipode
