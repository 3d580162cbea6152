// What writes and reads are named by, and what is stored with values. No I/O.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "antipode/lineage.h"
#include "mysql/facts.h"

namespace antipode::mysql {

/// The writes that a session reported: one, or several of several statements. `gtids` is MySQL's `OWN_GTID` or
/// MariaDB's `last_gtid`; `runs` learns. Throws NotGtids.
std::vector<WriteId> Committed(Flavor flavor, std::string_view gtids, Runs& runs, const std::string& datastore);

/// What answers `Covered`: in this order.
const char* CoverQuery(Flavor flavor);
/// What a read before it may have seen. Throws NotGtids.
std::vector<WriteId> Covered(Flavor flavor, const Row& asked, const std::string& datastore);
/// The same as a lineage: the mark `unsampled` where it is no position.
Lineage Covering(Flavor flavor, const Row& asked, const std::string& datastore);

/// The lineage of the texts stored with a value.
Lineage BesideOf(const std::string& datastore, std::string_view texts);

}  // namespace antipode::mysql
