// Counts what a block does in all threads: allocations, calls of the system, threads.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

namespace antipode::budgets {

/// How often it came, by what it is ("allocations", "threads", "system calls: poll") and by the place in this
/// executable where the library's innermost function was: an offset, or 0 where none of the library's called.
using Counts = std::map<std::pair<const char*, std::uintptr_t>, std::int64_t>;

/// Counting begins with the first and ends with the second, in all threads of the process.
///
/// What the C library calls within itself is not seen, nor what depends on who came first, as `futex` does.
void Begin() noexcept;
Counts End();

/// While it lives, what this thread does is not counted: it waits for others.
class Uncounted {
 public:
  Uncounted() noexcept;
  ~Uncounted();
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;
};

}  // namespace antipode::budgets
