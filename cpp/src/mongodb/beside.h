// The field `_ap` of a document, and tombstones: what is stored, and what a reader makes of it. No I/O.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "antipode/clock.h"
#include "antipode/lineage.h"
#include "mongodb/bson.h"

namespace antipode::mongodb {

/// How a value and the lineage stored with it go together; `NameOf` is the name in vectors and counts.
enum class Match { kOwn, kAbsent, kForeign, kUnreadable };
std::string NameOf(Match match);

/// What a write of a whole value stores with it. `holder` has the value as its field `v`.
Doc Whole(const Doc& holder, const Lineage& lineage);
/// What the digest of a field's value is made of; a missing value has that of null.
Doc HolderOf(const std::optional<Value>& value);
/// The lineage stored with a value; foreign and absent ones are empty, what cannot be read is marked.
std::pair<Lineage, Match> FoundBeside(const Doc& holder, const std::optional<Value>& beside,
                                      const std::string& datastore);
/// The same whatever the value is.
std::pair<Lineage, Match> FoundIn(const std::optional<Value>& beside, const std::string& datastore);
/// The birth mark of a document that an update made: what deletions before it left is part of its lineage.
std::optional<std::string> BirthOf(const bson_t& document);

/// Which lineages one client keeps as numbers: those of few logs within a day. Thread-safe.
class Numbers {
 public:
  explicit Numbers(const Clock& clock = SystemClock()) : clock_(clock) {}
  /// The lineage as positions by their logs; none where these would not say all of it.
  std::optional<Doc> Of(const Lineage& lineage);

 private:
  bool Admit(const std::set<std::string>& logs);

  const Clock& clock_;
  std::mutex lock_;
  double since_s_ = clock_.Now();
  std::set<std::string> logs_;
};

/// The command that leaves tombstones of a document, merged with those that lie there.
Doc Bury(const std::string& collection, std::string_view id, int slot, const Lineage& lineage, Numbers& numbers);
/// The command that finds what deletions left: of a document, or, without an id, of whatever documents.
Doc SearchTombstones(const std::string& collection, const std::optional<std::string>& id);
/// What the tombstones of a reply say.
Lineage Buried(const bson_t& reply, const std::string& datastore);

}  // namespace antipode::mongodb
