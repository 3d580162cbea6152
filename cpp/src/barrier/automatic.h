// Automatic barriers: each read waits for what its request depends on, where it reads.
#pragma once

#include <memory>

#include "barrier/floor.h"

namespace antipode {

/// What the next read by a client of `store` must see, as `Floor::Current` has it.
std::shared_ptr<ReadFloor> CurrentFloor(Store& store, bool reads, const void* who = nullptr,
                                        std::shared_ptr<StaleRead> stale = nullptr);

}  // namespace antipode
