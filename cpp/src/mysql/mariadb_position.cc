#include "mysql/mariadb_position.h"

#include <algorithm>

#include "antipode/text.h"
#include "mysql/digits.h"
#include "mysql/gtid_set.h"

namespace antipode::mysql {
namespace {

constexpr std::size_t kIdDigits = 10;

}  // namespace

std::optional<MariaDbLog> MariaDbLog::Of(std::string_view key) {
  const auto parts = text::Split(key, '.');
  const auto domain = NumberIn(parts.front(), kIdDigits);
  const auto server = NumberIn(parts.back(), kIdDigits);
  if (parts.size() != 2 || !domain || !server) return std::nullopt;
  return MariaDbLog{*domain, *server};
}

MariaDbPosition MariaDbPosition::Parse(std::string_view text) {
  MariaDbPosition position;
  for (const std::string_view part : text::Split(text, ',')) {
    const std::string_view gtid = text::Trimmed(part);
    if (gtid.empty()) continue;
    const auto pieces = text::Split(gtid, '-');
    if (pieces.size() != 3) throw NotGtids(part);
    const auto domain = NumberIn(pieces[0], kIdDigits);
    const auto server = NumberIn(pieces[1], kIdDigits);
    const auto number = NumberIn(pieces[2]);
    if (!domain || !server || !number) throw NotGtids(part);
    std::uint64_t& last = position.last_[{*domain, *server}];
    last = std::max(last, *number);
  }
  return position;
}

bool MariaDbPosition::Reaches(const MariaDbLog& log, std::uint64_t number) const {
  const auto found = last_.find(log);
  return found != last_.end() && found->second >= number;
}

std::optional<std::uint64_t> MariaDbPosition::Highest(std::uint64_t domain) const {
  std::optional<std::uint64_t> highest;
  for (const auto& [log, number] : last_) {
    if (log.domain == domain) highest = std::max(highest.value_or(0), number);
  }
  return highest;
}

bool MariaDbPosition::IsPast(std::uint64_t domain, std::uint64_t number) const {
  const auto highest = Highest(domain);
  return highest && *highest >= number;
}

bool MariaDbPosition::Covers(const MariaDbPosition& other) const {
  return std::all_of(other.last_.begin(), other.last_.end(),
                     [&](const auto& each) { return Reaches(each.first, each.second); });
}

bool MariaDbPosition::CoversDomains(const MariaDbPosition& other) const {
  return std::all_of(other.last_.begin(), other.last_.end(),
                     [&](const auto& each) { return IsPast(each.first.domain, each.second); });
}

}  // namespace antipode::mysql
