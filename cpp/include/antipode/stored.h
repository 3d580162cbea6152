#pragma once

#include <string_view>

#include "antipode/export.h"
#include "antipode/lineage.h"

namespace antipode {

// For shims: lineages that are stored with values, as text. What is written there is `Serialize(lineage)`.

/// The lineage of a text that a store or a message had, as it counts here and now. Throws LineageDecodeError.
ANTIPODE_EXPORT Lineage ReceivedText(std::string_view text);
/// The same; where it is none, the mark (`subject`, `unreadable`), counted and logged.
ANTIPODE_EXPORT Lineage Readable(std::string_view subject, std::string_view text);

}  // namespace antipode
