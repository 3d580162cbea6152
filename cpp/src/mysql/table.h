// Values with their lineage in an invisible column of the same row.
//
// In front of the lineage are nine bytes of a digest of the value, by which a value that a plain client changed is told
// from its lineage, and a byte that each write changes: a row that stays as it was is no transaction, and has no
// position. A deletion leaves its lineage in a table of tombstones.
#pragma once

#include <string>
#include <string_view>

#include "mysql/connection.h"

namespace antipode::mysql {

/// A row of the table, or none.
struct Stored {
  Text value;
  Text texts;        ///< The lineages stored with the value; none where there are none.
  bool own = false;  ///< Whether they are those of the value.
};

/// Replaces the value and its lineage: one statement.
void WriteRow(Connection& connection, std::string_view key, std::string_view value, std::string_view lineage);
/// Deletes a value and leaves its lineage, in several statements.
void DeleteRow(Connection& connection, std::string_view key, std::string_view lineage);
Stored ReadRow(Connection& connection, std::string_view key);
/// The lineage that a deletion left; none where there was none.
Text Buried(Connection& connection, std::string_view key);

/// As clients do that know nothing of lineages.
void WritePlain(Connection& connection, std::string_view key, std::string_view value);
void DeletePlain(Connection& connection, std::string_view key);

}  // namespace antipode::mysql
