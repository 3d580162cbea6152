// Where a thread is: what a dry run makes places of.
#pragma once

#include <cstdint>
#include <vector>

namespace antipode {

/// Addresses of code, the innermost call first: of each the call itself, not what it returns to.
using CallStack = std::vector<std::uintptr_t>;

/// The calls that this thread is in, this one included.
CallStack CurrentCallStack();

}  // namespace antipode
