#include "mysql/facts.h"

#include <algorithm>

#include "antipode/errors.h"
#include "antipode/text.h"
#include "mysql/digits.h"

namespace antipode::mysql {
namespace {

constexpr const char* kLogOn = "set log_bin (the binary log is off)";
constexpr const char* kGtidsOn = "set gtid_mode=ON and enforce_gtid_consistency=ON";

/// The number with which a text begins, which is taken off together with the point after it.
std::uint64_t Leading(std::string_view& text) {
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  const auto number = NumberIn(text.substr(0, digits));
  text.remove_prefix(digits);
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
  } else {
    text = {};
  }
  return number.value_or(0);
}

/// 8.0.22 is 8,000,022; 0 where it is no version.
std::uint64_t VersionIn(std::string_view text) {
  static constexpr std::string_view kPrefix = "5.5.5-";  // Of servers of MariaDB, for old clients.
  if (text::StartsWith(text, kPrefix)) text.remove_prefix(kPrefix.size());
  const std::uint64_t major = Leading(text);
  const std::uint64_t minor = Leading(text);
  return major * 1'000'000 + minor * 1'000 + Leading(text);
}

bool Logs(const Row& variables) {
  const std::string& log_bin = In(variables, "log_bin");
  return log_bin == "ON" || log_bin == "1";
}

std::vector<std::string> Problems(const Facts& facts, std::uint64_t version, const Row& variables) {
  const bool mysql = facts.flavor == Flavor::kMySql;
  std::vector<std::string> problems;
  if (version < (mysql ? 8'000'000 : 10'006'000)) {
    problems.push_back("it is version " + In(variables, "version") + ": " + (mysql ? "8.0" : "10.6") +
                       " or later is needed");
  }
  if (mysql) {
    if (In(variables, "gtid_mode") == "OFF") problems.emplace_back(kGtidsOn);
    return problems;
  }
  // What a server of MariaDB has executed is in its binary log.
  if (!Logs(variables)) problems.emplace_back(kLogOn);
  if (In(variables, "log_slave_updates") != "ON") problems.emplace_back("set log_slave_updates=ON");
  return problems;
}

}  // namespace

const std::string& In(const Row& row, const std::string& name) {
  static const auto& none = *new std::string;
  const auto found = row.find(name);
  return found == row.end() ? none : found->second;
}

Flavor FlavorOf(std::string_view version) {
  return text::Lower(version).find("mariadb") == std::string::npos ? Flavor::kMySql : Flavor::kMariaDb;
}

Facts Facts::Of(const Row& variables, const std::string& started) {
  Facts facts;
  facts.flavor = FlavorOf(In(variables, "version"));
  const std::uint64_t version = VersionIn(In(variables, "version"));
  const std::string& id = In(variables, "server_id");
  facts.server_id = NumberIn(id).value_or(0);
  facts.replica_status = version >= 8'000'022;
  if (facts.flavor == Flavor::kMySql) {
    facts.uuid = text::Lower(In(variables, "server_uuid"));
    facts.server = facts.uuid + "@" + started;
    facts.group = !In(variables, "group_replication_group_name").empty();
    const std::string& block = In(variables, "group_replication_gtid_assignment_block_size");
    if (facts.group) facts.group_block = NumberIn(block).value_or(0);
    facts.executed = GtidSet::Parse(In(variables, "gtid_executed"));
  } else {
    const std::string& uid = In(variables, "server_uid");
    facts.server = (uid.empty() ? id : uid) + "@" + started;
    facts.strict = In(variables, "gtid_strict_mode") == "ON";
  }
  facts.problems = Problems(facts, version, variables);
  if (!Logs(variables)) facts.unnumbered.emplace_back(kLogOn);
  if (text::StartsWith(In(variables, "gtid_mode"), "OFF")) facts.unnumbered.emplace_back(kGtidsOn);
  facts.filters = FiltersIn(variables);
  return facts;
}

std::vector<std::string> Facts::Lacking() const {
  std::vector<std::string> lacking = problems;
  for (const std::string& each : unnumbered) {
    if (std::find(lacking.begin(), lacking.end(), each) == lacking.end()) lacking.push_back(each);
  }
  return lacking;
}

void Facts::Require(const std::string& datastore) const {
  if (problems.empty()) return;
  throw ConfigurationError("'" + datastore + "' is on a " + (flavor == Flavor::kMySql ? "MySQL" : "MariaDB") +
                           " server without positions to wait for: " + Joined(problems));
}

std::vector<std::string> FiltersIn(const Row& settings) {
  std::vector<std::string> filters;
  for (const auto& [name, value] : settings) {
    const std::string lower = text::Lower(name);
    // Servers that are ignored are those of a ring: their writes have come round.
    if (text::StartsWith(lower, "replicate_") && !text::EndsWith(lower, "server_ids") && !value.empty()) {
      filters.push_back(lower + "=" + value);
    }
  }
  return filters;
}

std::string Joined(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& each : texts) {
    if (!each.empty()) joined += (joined.empty() ? "" : "; ") + each;
  }
  return joined;
}

}  // namespace antipode::mysql
