// Lineages as text: bounded on the way out, never empty by mistake on the way in.
#pragma once

#include <string>
#include <string_view>

#include "antipode/lineage.h"

namespace antipode {

/// The lineage of a text from elsewhere, as it counts here and now. Throws LineageDecodeError.
Lineage ReceivedText(std::string_view text);
/// The same, and the mark (`subject`, `unreadable`), counted and logged, where it is none.
Lineage Readable(std::string_view subject, std::string_view text);
/// A lineage as it may leave this process.
std::string LeavingText(const Lineage& lineage);

}  // namespace antipode
