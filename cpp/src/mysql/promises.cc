#include "mysql/promises.h"

#include "antipode/clock.h"
#include "antipode/errors.h"
#include "antipode/text.h"

namespace antipode::mysql {
namespace {

/// How many records whose time is over go at once.
constexpr int kSweep = 32;

}  // namespace

const char* const kPromisesDdl =
    "CREATE TABLE IF NOT EXISTS `antipode_promises` (id BINARY(16) NOT NULL PRIMARY KEY, fulfilled BOOLEAN NOT NULL,"
    " refused BOOLEAN NOT NULL DEFAULT FALSE, until_s BIGINT UNSIGNED NOT NULL, KEY (until_s)) ENGINE=InnoDB"
    " COMMENT 'antipode 1'";

std::string PromisesIn(const std::string& database) {
  std::string name;
  for (const char c : database) name += c == '`' ? "``" : std::string(1, c);
  return "`" + name + "`.`antipode_promises`";
}

std::string Recording(const std::string& table, const Promise& promise, bool fulfilled) {
  const auto until_s = static_cast<std::uint64_t>(SystemClock().UnixSeconds()) + RecordSeconds(promise);
  return "INSERT INTO " + table + " (id, fulfilled, until_s) VALUES (X'" + promise.id + "', " +
         (fulfilled ? "TRUE" : "FALSE") + ", " + std::to_string(until_s) +
         ") ON DUPLICATE KEY UPDATE refused = refused ^ " + (fulfilled ? "(NOT fulfilled)" : "fulfilled");
}

std::map<Promise, Status> RecordsOf(Connection& connection, const std::string& table,
                                    const std::set<Promise>& promises) {
  std::string ids;
  for (const Promise& each : promises) ids += (ids.empty() ? "X'" : ", X'") + each.id + "'";
  std::map<std::string, Status> records;
  try {
    for (const Row& row :
         connection.Rows("SELECT HEX(id) AS id, fulfilled FROM " + table + " WHERE id IN (" + ids + ")")) {
      records[text::Lower(In(row, "id"))] = In(row, "fulfilled") == "0" ? Status::kAbandoned : Status::kVisible;
    }
  } catch (const Error& error) {
    if (IsNoTable(error)) return {};  // It may come as all writes do.
    if (IsDenied(error)) throw ConfigurationError("this user may not ask for promises: GRANT SELECT ON " + table);
    Refuse(error);
  }
  std::map<Promise, Status> found;
  for (const Promise& each : promises) {
    const auto record = records.find(each.id);
    if (record != records.end()) found[each] = record->second;
  }
  return found;
}

void SweepPromises(Connection& connection, const std::string& table) {
  connection.Ask("START TRANSACTION");
  const auto now_s = static_cast<std::uint64_t>(SystemClock().UnixSeconds());
  const auto old = connection.Rows("SELECT HEX(id) AS id FROM " + table + " FORCE INDEX (until_s) WHERE until_s < " +
                                   std::to_string(now_s) + " ORDER BY until_s LIMIT " + std::to_string(kSweep) +
                                   " FOR UPDATE SKIP LOCKED");
  for (const Row& row : old) connection.Ask("DELETE FROM " + table + " WHERE id = X'" + In(row, "id") + "'");
  connection.Ask("COMMIT");
}

void ExplainPromises(const std::string& datastore, const Error& error) {
  if (IsNoTable(error)) {
    throw ConfigurationError("'" + datastore + "' has no table for its promises; run: " + kPromisesDdl + ";");
  }
  if (IsDenied(error)) {
    throw ConfigurationError("'" + datastore +
                             "' does not let this user write to its table of promises: who fulfils promises needs "
                             "INSERT, SELECT, UPDATE and DELETE there");
  }
}

}  // namespace antipode::mysql
