// Which dependencies a barrier waits for, and what is settled before it starts.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "antipode/barrier.h"
#include "barrier/decisions.h"

namespace antipode {

struct Plan {
  Pending pending;                                     ///< What to wait for, now or at the read.
  std::vector<Outcome> settled;                        ///< What needs no waiting.
  std::set<Incomplete> incomplete;                     ///< What is missing within the datastores asked for.
  std::set<std::string> floored;                       ///< Datastores whose reads satisfy floors.
  std::map<std::string, std::set<Incomplete>> fenced;  ///< What of `incomplete` a fence discharges.
};

/// `own` are promises that who waits is about to fulfil. Throws ConfigurationError.
Plan Planned(const Lineage& lineage, const BarrierOptions& options, bool off, double unix_s,
             const std::set<std::string>& own, bool scoped);

/// Whether only reads see replicas of a datastore: of what could be asked there is but a primary.
bool IsSeenByReadsAlone(const std::string& datastore);
/// Outcomes of what `lineage` has of datastores for which this process has no store at all; `reported`: let pass.
std::vector<Outcome> AbsentOf(const Lineage& lineage, const std::set<std::string>& own, bool reported);
/// Counts and, once for each name, says datastores that are unknown here and were let pass.
void TellOfUnknownStores(const std::set<std::string>& names);

}  // namespace antipode
