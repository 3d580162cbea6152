#include "mysql/position.h"

#include "antipode/clock.h"
#include "antipode/stored.h"
#include "antipode/text.h"
#include "mysql/mariadb_position.h"

namespace antipode::mysql {

std::vector<WriteId> Committed(Flavor flavor, std::string_view gtids, Runs& runs, const std::string& datastore) {
  std::vector<WriteId> committed;
  const std::uint64_t hour = SystemClock().Hour();
  if (flavor == Flavor::kMariaDb) {
    const auto position = MariaDbPosition::Parse(gtids);
    for (const auto& [log, number] : position.last()) {
      committed.push_back({datastore, log.key(), number, hour});
    }
    return committed;
  }
  const GtidSet set = GtidSet::Parse(gtids);
  for (const auto& [log, found] : set.logs()) {
    for (const Run& run : found) {
      committed.push_back({datastore, MySqlLog{log, runs.FirstOf(log, run.last)}.key(), run.last, hour});
    }
  }
  return committed;
}

const char* CoverQuery(Flavor flavor) {
  if (flavor == Flavor::kMariaDb) return "SELECT @@GLOBAL.gtid_binlog_pos AS gtid_binlog_pos";
  return "SELECT @@GLOBAL.gtid_owned AS gtid_owned, @@GLOBAL.gtid_executed AS gtid_executed,"
         " @@GLOBAL.gtid_mode AS gtid_mode";
}

std::vector<WriteId> Covered(Flavor flavor, const Row& asked, const std::string& datastore) {
  std::vector<WriteId> covered;
  const std::uint64_t hour = SystemClock().Hour();
  if (flavor == Flavor::kMariaDb) {
    const auto position = MariaDbPosition::Parse(In(asked, "gtid_binlog_pos"));
    for (const auto& [log, number] : position.last()) {
      covered.push_back({datastore, log.key(), number, hour, true});
    }
    return covered;
  }
  const std::string& mode = In(asked, "gtid_mode");
  if (mode != "ON" && mode != "ON_PERMISSIVE") throw NotGtids("gtid_mode=" + mode);
  const GtidSet owned = GtidSet::Parse(In(asked, "gtid_owned"));
  const GtidSet seen = owned.Union(GtidSet::Parse(In(asked, "gtid_executed")));
  for (const auto& [log, runs] : seen.logs()) {
    for (const Run& run : runs) covered.push_back({datastore, MySqlLog{log, run.first}.key(), run.last, hour, true});
  }
  return covered;
}

Lineage Covering(Flavor flavor, const Row& asked, const std::string& datastore) {
  Lineage covering;
  try {
    for (const WriteId& each : Covered(flavor, asked, datastore)) covering = covering.Append(each);
    return covering;
  } catch (const NotGtids&) {
    return covering.Marked({datastore, "unsampled"});
  }
}

Lineage BesideOf(const std::string& datastore, std::string_view texts) {
  Lineage lineage;
  for (const std::string_view text : text::Split(texts, ',')) lineage = lineage.Merge(StoredLineage(datastore, text));
  return lineage;
}

}  // namespace antipode::mysql
