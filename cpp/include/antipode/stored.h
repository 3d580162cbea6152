#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "antipode/export.h"
#include "antipode/lineage.h"

namespace antipode {

// For shims: lineages that are stored with values, as text.

/// What to store with a value for a lineage: bounded and filtered, as all that is sent, and without the
/// notes of a dry run.
ANTIPODE_EXPORT std::string StoredText(const Lineage& lineage);
/// The lineage of a text that was found with a value; where it is none, the mark (`datastore`, `unreadable`), counted
/// and logged.
ANTIPODE_EXPORT Lineage StoredLineage(std::string_view datastore, std::string_view text);

/// The lineage of a text that came with a message, as it counts here and now. Throws LineageDecodeError.
ANTIPODE_EXPORT Lineage ReceivedText(std::string_view text);
/// The same; where it is none, the mark (`subject`, `unreadable`), counted and logged.
ANTIPODE_EXPORT Lineage Readable(std::string_view subject, std::string_view text);

/// What a shim reads: a value, none where there is nothing, and what it depends on.
struct Reading {
  std::optional<std::string> value;
  Lineage lineage;
};

}  // namespace antipode
