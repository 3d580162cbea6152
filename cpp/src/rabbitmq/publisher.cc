#include "rabbitmq/publisher.h"

#include <array>
#include <cstddef>
#include <random>
#include <string_view>

namespace antipode::rabbitmq {
namespace {

/// Publishers that a channel keeps: names of reply queues are no two alike.
constexpr std::size_t kMostOpen = 1'024;

}  // namespace

std::string NewPublisher(std::uint64_t unix_ms) {
  std::random_device random;
  std::array<unsigned, 16> bytes{};
  for (std::size_t n = 0; n < 6; ++n) bytes[n] = unix_ms >> 8 * (5 - n) & 255;
  for (std::size_t n = 6; n < 16; ++n) bytes[n] = random() & 255;
  bytes[6] = 0x70 | (bytes[6] & 15);
  bytes[8] = 0x80 | (bytes[8] & 63);
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (std::size_t n = 0; n < 16; ++n) {
    if (n == 4 || n == 6 || n == 8 || n == 10) text += '-';
    text += {kHex[bytes[n] >> 4], kHex[bytes[n] & 15]};
  }
  return text;
}

std::optional<double> BornAt(const std::string& publisher) {
  constexpr std::string_view kShape = "hhhhhhhh-hhhh-7hhh-vhhh-hhhhhhhhhhhh";
  if (publisher.size() != kShape.size()) return std::nullopt;
  std::uint64_t unix_ms = 0;
  for (std::size_t n = 0; n < kShape.size(); ++n) {
    constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
    const std::size_t digit = kDigits.find(publisher[n]);
    const std::string_view allowed = kShape[n] == 'h' ? kDigits : kShape[n] == 'v' ? "89abAB" : kShape.substr(n, 1);
    if (allowed.find(publisher[n]) == std::string_view::npos) return std::nullopt;
    constexpr std::size_t kEndOfBirth = 13;
    if (n < kEndOfBirth && digit != std::string_view::npos) unix_ms = unix_ms << 4 | (digit < 16 ? digit : digit - 6);
  }
  return static_cast<double>(unix_ms) / 1'000;
}

Publications::Name Publications::Next(const std::string& lane, double now_s, std::uint64_t unix_ms) {
  auto held = open_.find(lane);
  if (held == open_.end() || now_s - held->second.since_s > kRollS) {
    open_.erase(lane);
    if (open_.size() >= kMostOpen) open_.clear();
    held = open_.emplace(lane, Publisher{NewPublisher(unix_ms), now_s}).first;
  }
  return {held->second.key, ++held->second.last};
}

}  // namespace antipode::rabbitmq
