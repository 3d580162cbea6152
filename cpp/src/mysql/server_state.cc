#include "mysql/server_state.h"

#include "antipode/text.h"

namespace antipode::mysql {
namespace {

/// A log, and a number of it.
template <typename Log>
struct Numbered {
  Log log;
  std::uint64_t number;
};

/// What a write names; none where that is no log of this family, or no number.
template <typename Log>
std::optional<Numbered<Log>> NumberedBy(const WriteId& write) {
  const auto* number = std::get_if<std::uint64_t>(&write.version);
  auto log = Log::Of(write.key);
  if (number == nullptr || !log) return std::nullopt;
  return Numbered<Log>{*std::move(log), *number};
}

}  // namespace

ServerState::~ServerState() = default;

bool MySqlState::Has(const WriteId& write, bool /*replica*/) const {
  const auto named = NumberedBy<MySqlLog>(write);
  return named && executed_.Contains(named->log.name, named->log.first, named->number);
}

bool MySqlState::Knows(const WriteId& write) const {
  const auto log = MySqlLog::Of(write.key);
  return log && !executed_.RunsOf(log->name).empty();
}

bool MySqlState::Names(const WriteId& write) const { return NumberedBy<MySqlLog>(write).has_value(); }

bool MySqlState::Excludes(const WriteId& /*write*/) const { return false; }

std::uint64_t MySqlState::At(const WriteId& write) const {
  const auto log = MySqlLog::Of(write.key);
  if (!log) return 0;
  for (const Run& run : executed_.RunsOf(log->name)) {
    if (run.Contains(log->first, log->first)) return run.last;
  }
  return 0;
}

bool MySqlState::Covers(const ServerState& earlier) const {
  return executed_.Covers(static_cast<const MySqlState&>(earlier).executed_);
}

bool MariaDbState::Has(const WriteId& write, bool replica) const {
  const auto named = NumberedBy<MariaDbLog>(write);
  if (!named) return false;
  if (applied_.Reaches(named->log, named->number)) return true;
  // A replica logs before it commits, so there the position has to be past the number, too.
  const bool own = !replica || named->log.server == server_id_;
  return logged_.Reaches(named->log, named->number) && (own || applied_.IsPast(named->log.domain, named->number));
}

bool MariaDbState::Knows(const WriteId& write) const {
  const auto named = NumberedBy<MariaDbLog>(write);
  return named && (logged_.Knows(named->log) || applied_.Knows(named->log));
}

bool MariaDbState::Names(const WriteId& write) const { return NumberedBy<MariaDbLog>(write).has_value(); }

bool MariaDbState::Excludes(const WriteId& write) const {
  const auto named = NumberedBy<MariaDbLog>(write);
  return named && strict_ && Knows(write) && !logged_.Reaches(named->log, named->number) &&
         !applied_.Reaches(named->log, named->number) && logged_.IsPast(named->log.domain, named->number);
}

std::uint64_t MariaDbState::At(const WriteId& write) const {
  const auto named = NumberedBy<MariaDbLog>(write);
  return named ? applied_.Highest(named->log.domain).value_or(0) : 0;
}

bool MariaDbState::Covers(const ServerState& earlier) const {
  const auto& other = static_cast<const MariaDbState&>(earlier);
  return logged_.Covers(other.logged_) && applied_.CoversDomains(other.applied_);
}

bool Source::Brings(const WriteId& write) const {
  if (const auto* set = std::get_if<GtidSet>(&received)) {
    const auto named = NumberedBy<MySqlLog>(write);
    return named && (set->Contains(named->log.name, named->number, named->number) || named->log.name == log ||
                     text::StartsWith(named->log.name, log + ":"));
  }
  const auto named = NumberedBy<MariaDbLog>(write);
  return named && (std::to_string(named->log.server) == log ||
                   std::get<MariaDbPosition>(received).Reaches(named->log, named->number));
}

}  // namespace antipode::mysql
