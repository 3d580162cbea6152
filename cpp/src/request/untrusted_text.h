// Lineages as text: bounded on the way out, never empty by mistake on the way in.
#pragma once

#include <string>

#include "antipode/stored.h"

namespace antipode {

/// A lineage as it may leave this process.
std::string LeavingText(const Lineage& lineage);

}  // namespace antipode
