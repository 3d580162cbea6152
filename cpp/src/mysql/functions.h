// Which functions a statement calls that are not built into the server: they may write. The table is the
// specification's (docs/spec/sql-functions.md), of MySQL 9 and MariaDB 10.11. No I/O.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "mysql/facts.h"

namespace antipode::mysql {

using Functions = std::set<std::string>;

/// The functions that a text calls and that are not built into both families, as it names them, without quotes, in
/// small letters; `nextval` for what takes a number of a sequence.
Functions CallsOf(std::string_view sql);
/// Without those that are built into one family.
Functions CallsOf(const Functions& called, Flavor flavor);
/// Whether it takes a number of a sequence of MariaDB's: that writes, even where the transaction is rolled back.
bool IsOfSequence(std::string_view function);
/// The names that an option gives, as `CallsOf` has them. Throws ConfigurationError where one is no `name` or
/// `schema.name`.
Functions Declared(const Functions& readonly_functions);

}  // namespace antipode::mysql
