// What servers of MySQL and MariaDB answer as positions, and what is stored in the column of the lineage.
#include "holds.h"
#include "mysql/gtid_set.h"
#include "mysql/mariadb_position.h"
#include "mysql/position.h"

namespace {

using antipode::fuzz::Must;

/// Runs are in order, and none touches the next.
void MustBeSet(const antipode::mysql::GtidSet& set) {
  for (const auto& [log, runs] : set.logs()) {
    Must(!runs.empty());
    for (std::size_t n = 0; n < runs.size(); ++n) {
      Must(runs[n].first <= runs[n].last);
      Must(n == 0 || runs[n].first > runs[n - 1].last + 1);
      Must(set.Contains(log, runs[n].first, runs[n].last));
    }
  }
  Must(set.Covers(set) && set.Union(set).Covers(set));
}

template <typename Position>
std::optional<Position> Parsed(std::string_view text) {
  try {
    return Position::Parse(text);
  } catch (const antipode::mysql::NotGtids&) {
    return std::nullopt;
  }
}

void Commit(antipode::mysql::Flavor flavor, std::string_view text) {
  antipode::mysql::Runs runs;
  try {
    for (const auto& each : Committed(flavor, text, runs, "posts")) {
      Must(flavor == antipode::mysql::Flavor::kMySql ? antipode::mysql::MySqlLog::Of(each.key).has_value()
                                                     : antipode::mysql::MariaDbLog::Of(each.key).has_value());
    }
  } catch (const antipode::mysql::NotGtids&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = antipode::fuzz::Text(data, size);
  if (const auto set = Parsed<antipode::mysql::GtidSet>(text)) MustBeSet(*set);
  if (const auto position = Parsed<antipode::mysql::MariaDbPosition>(text)) {
    Must(position->Covers(*position) && position->CoversDomains(*position));
  }
  Commit(antipode::mysql::Flavor::kMySql, text);
  Commit(antipode::mysql::Flavor::kMariaDb, text);
  antipode::fuzz::MustTravel(antipode::mysql::BesideOf("posts", text));
  return 0;
}
