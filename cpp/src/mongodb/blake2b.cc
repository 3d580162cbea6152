#include "mongodb/blake2b.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace antipode::mongodb {
namespace {

using Words = std::array<std::uint64_t, 8>;
constexpr std::size_t kBlock = 128;
constexpr std::size_t kRounds = 12;
/// The fractions of the square roots of the first eight primes.
constexpr Words kStart{0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
                       0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
constexpr std::array<std::array<std::uint8_t, 16>, 10> kOrder{{
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
}};

constexpr std::uint64_t Turned(std::uint64_t word, unsigned bits) { return word >> bits | word << (64 - bits); }

void Mix(std::array<std::uint64_t, 16>& v, std::size_t column, std::size_t shift, std::uint64_t x, std::uint64_t y) {
  // Columns first, then diagonals: each row is turned by one more.
  const auto at = [&](std::size_t row) -> std::uint64_t& { return v[4 * row + (column + shift * row) % 4]; };
  at(0) += at(1) + x;
  at(3) = Turned(at(3) ^ at(0), 32);
  at(2) += at(3);
  at(1) = Turned(at(1) ^ at(2), 24);
  at(0) += at(1) + y;
  at(3) = Turned(at(3) ^ at(0), 16);
  at(2) += at(3);
  at(1) = Turned(at(1) ^ at(2), 63);
}

void Compress(Words& state, std::string_view block, std::uint64_t taken, bool last) {
  std::array<std::uint64_t, 16> message{};
  for (std::size_t n = 0; n < block.size(); ++n) {
    message[n / 8] |= std::uint64_t{static_cast<unsigned char>(block[n])} << 8 * (n % 8);
  }
  std::array<std::uint64_t, 16> v{};
  std::copy(state.begin(), state.end(), v.begin());
  std::copy(kStart.begin(), kStart.end(), v.begin() + 8);
  v[12] ^= taken;
  if (last) v[14] = ~v[14];
  for (std::size_t round = 0; round < kRounds; ++round) {
    const auto& order = kOrder[round % kOrder.size()];
    for (std::size_t n = 0; n < 8; ++n) Mix(v, n % 4, n / 4, message[order[2 * n]], message[order[2 * n + 1]]);
  }
  for (std::size_t n = 0; n < state.size(); ++n) state[n] ^= v[n] ^ v[n + 8];
}

}  // namespace

std::string Blake2b(std::string_view data, std::size_t size) {
  Words state = kStart;
  state[0] ^= 0x01010000 ^ size;
  std::size_t taken = 0;
  while (data.size() - taken > kBlock) {
    Compress(state, data.substr(taken, kBlock), taken + kBlock, false);
    taken += kBlock;
  }
  Compress(state, data.substr(taken), data.size(), true);
  std::string digest(size, '\0');
  for (std::size_t n = 0; n < size; ++n) digest[n] = static_cast<char>(state[n / 8] >> 8 * (n % 8));
  return digest;
}

}  // namespace antipode::mongodb
