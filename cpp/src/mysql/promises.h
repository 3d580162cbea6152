// The table of promises, and what is said to it. Which record of a promise comes first stays.
#pragma once

#include <map>
#include <set>
#include <string>

#include "antipode/shim.h"
#include "mysql/connection.h"

namespace antipode::mysql {

/// A statement that changed so many rows changed one that was there: the record says the opposite.
inline constexpr std::uint64_t kOpposite = 2;

extern const char* const kPromisesDdl;

/// The table, with its schema.
std::string PromisesIn(const std::string& database);
/// What records a promise, unless it has a record.
std::string Recording(const std::string& table, const Promise& promise, bool fulfilled);
/// What the server has of promises, as it is committed. Throws Error, ConfigurationError where the user may not read
/// the table, or Unreachable.
std::map<Promise, Status> RecordsOf(Connection& connection, const std::string& table,
                                    const std::set<Promise>& promises);
/// Deletes a batch of records whose time is over; waits for none that somebody else holds.
void SweepPromises(Connection& connection, const std::string& table);
/// Throws ConfigurationError where an error says something about the table.
void ExplainPromises(const std::string& datastore, const Error& error);

}  // namespace antipode::mysql
