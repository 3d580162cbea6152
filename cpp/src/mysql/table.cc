#include "mysql/table.h"

#include <algorithm>

#include "antipode/clock.h"
#include "antipode/settings.h"
#include "mysql/promises.h"

namespace antipode::mysql {
namespace {

/// The digest, and the byte that changes.
constexpr std::size_t kHead = 10;
constexpr const char* kDigest = "LEFT(UNHEX(SHA2(`v`, 256)), 9)";
constexpr const char* kTable = "antipode_kv";

}  // namespace

const std::vector<std::string>& TableStatements() {
  static const auto& statements = *new std::vector<std::string>{
      "CREATE TABLE IF NOT EXISTS `antipode_kv` (`k` VARBINARY(512) NOT NULL PRIMARY KEY, `v` LONGBLOB NOT NULL,"
      " `_ap` MEDIUMBLOB NULL INVISIBLE)",
      "CREATE TABLE IF NOT EXISTS `antipode_tombstone` (t VARBINARY(256) NOT NULL, k VARBINARY(512) NOT NULL,"
      " l MEDIUMBLOB NOT NULL, h INT UNSIGNED NOT NULL, n INT UNSIGNED NOT NULL, PRIMARY KEY (t, k), KEY (h))",
      kPromisesDdl};
  return statements;
}

void WriteRow(Connection& connection, std::string_view key, std::string_view value, std::string_view lineage) {
  connection.Ask("INSERT INTO `antipode_kv` (`k`, `v`, `_ap`) VALUES (" + connection.Quoted(key) + ", " +
                 connection.Quoted(value) + ", CONCAT(" + kDigest + ", CHAR(0), " + connection.Quoted(lineage) +
                 ")) ON DUPLICATE KEY UPDATE `_ap` = INSERT(VALUES(`_ap`), 10, 1,"
                 " CHAR((COALESCE(ASCII(SUBSTRING(`_ap`, 10, 1)), 0) + 1) & 255)), `v` = VALUES(`v`)");
}

void DeleteRow(Connection& connection, std::string_view key, std::string_view lineage) {
  const std::uint64_t hour = SystemClock().Hour();
  const auto horizon_h = static_cast<std::uint64_t>(CurrentSettings().horizon.count() / 3'600);
  // The tombstone first, so that absence is never bare.
  connection.Ask("INSERT INTO `antipode_tombstone` (t, k, l, h, n) VALUES ('" + std::string(kTable) + "', " +
                 connection.Quoted(key) + ", " + connection.Quoted(lineage) + ", " +
                 std::to_string(hour + horizon_h + 1) +
                 ", 0) ON DUPLICATE KEY UPDATE l = VALUES(l), h = VALUES(h), n = (n + 1) & 65535");
  DeletePlain(connection, key);
  // Two deletions that wait for each other's old tombstones would be a deadlock.
  const std::string old = "h < " + std::to_string(hour);
  const Answer found = connection.Ask("SELECT t, k FROM `antipode_tombstone` WHERE " + old +
                                      " ORDER BY h LIMIT 8 FOR UPDATE SKIP LOCKED");
  for (const auto& row : found.rows) {
    connection.Ask("DELETE FROM `antipode_tombstone` WHERE t = " + connection.Quoted(row[0].value_or("")) +
                   " AND k = " + connection.Quoted(row[1].value_or("")) + " AND " + old);
  }
}

Stored ReadRow(Connection& connection, std::string_view key) {
  const Answer found = connection.Ask("SELECT `v`, `_ap`, LEFT(`_ap`, 9) = " + std::string(kDigest) +
                                      " AS own FROM `antipode_kv` WHERE `k` = " + connection.Quoted(key));
  if (found.rows.empty()) return {};
  const auto& row = found.rows.front();
  Stored stored{row[0], std::nullopt, row[2] == "1"};
  if (row[1]) stored.texts = row[1]->substr(std::min(kHead, row[1]->size()));
  return stored;
}

Text Buried(Connection& connection, std::string_view key) {
  const Answer found = connection.Ask("SELECT l FROM `antipode_tombstone` WHERE t = '" + std::string(kTable) +
                                      "' AND k = " + connection.Quoted(key));
  return found.rows.empty() ? std::nullopt : found.rows.front()[0];
}

void WritePlain(Connection& connection, std::string_view key, std::string_view value) {
  connection.Ask("INSERT INTO `antipode_kv` (`k`, `v`) VALUES (" + connection.Quoted(key) + ", " +
                 connection.Quoted(value) + ") ON DUPLICATE KEY UPDATE `v` = VALUES(`v`)");
}

void DeletePlain(Connection& connection, std::string_view key) {
  connection.Ask("DELETE FROM `antipode_kv` WHERE `k` = " + connection.Quoted(key));
}

}  // namespace antipode::mysql
