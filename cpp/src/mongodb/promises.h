// The records of promises: a collection, and what is said to it. No I/O.
//
// Whichever record of a promise comes first stays: an upsert that says the opposite finds no document that fits it, and
// cannot insert another of that `_id`.
#pragma once

#include <map>
#include <set>

#include "antipode/outcomes.h"
#include "antipode/write_id.h"
#include "mongodb/bson.h"

namespace antipode::mongodb {

/// A record that says the opposite is there, or another is written now.
inline constexpr int kDuplicate = 11000;

/// The command that records what became of a promise.
Doc Recording(const Promise& promise, bool fulfilled);
/// The command that finds records, and what its reply says; those that have none are left out.
Doc SearchRecords(const std::set<Promise>& promises);
std::map<Promise, Status> RecordsIn(const bson_t& reply, const std::set<Promise>& promises);

}  // namespace antipode::mongodb
