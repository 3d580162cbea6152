// Names that are drawn.
#pragma once

#include <random>
#include <string>

namespace antipode::dry_run {

/// So many random hexadecimal digits.
inline std::string RandomHex(int digits) {
  std::random_device random;
  std::string hex;
  for (int i = 0; i < digits; ++i) hex += "0123456789abcdef"[random() & 0xFU];
  return hex;
}

}  // namespace antipode::dry_run
