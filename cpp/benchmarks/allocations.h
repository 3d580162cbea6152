// Counts what is allocated.
#pragma once

#include <cstdint>

namespace antipode::benchmarks {

/// How many times this thread has allocated memory since it began.
std::uint64_t Allocations() noexcept;

}  // namespace antipode::benchmarks
