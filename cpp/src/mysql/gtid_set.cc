#include "mysql/gtid_set.h"

#include <algorithm>

#include "antipode/text.h"
#include "mysql/digits.h"

namespace antipode::mysql {
namespace {

constexpr std::size_t kUuid = 36;
constexpr std::size_t kTag = 32;
constexpr std::size_t kDigits = 19;
constexpr std::size_t kShown = 80;

bool IsLetter(char c) { return c == '_' || (c >= 'a' && c <= 'z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); }

/// Whether a text begins with a UUID.
bool HasUuid(std::string_view text) {
  if (text.size() < kUuid) return false;
  for (std::size_t i = 0; i < kUuid; ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !IsHex(text[i])) return false;
  }
  return true;
}

bool IsTag(std::string_view text) {
  if (text.empty() || text.size() > kTag || !IsLetter(text.front())) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return IsLetter(c) || IsDigit(c); });
}

/// `first` or `first-last`, and the threads that own it.
std::optional<Run> RunIn(std::string_view text) {
  const auto parts = text::Split(text, '#');
  const bool owned = std::all_of(parts.begin() + 1, parts.end(), [](std::string_view thread) {
    return !thread.empty() && std::all_of(thread.begin(), thread.end(), IsDigit);
  });
  const auto ends = text::Split(parts.front(), '-');
  const auto first = NumberIn(ends.front(), kDigits);
  const auto last = NumberIn(ends.back(), kDigits);
  if (!owned || ends.size() > 2 || !first || !last) return std::nullopt;
  return Run{*first, *last};
}

/// In order, with what overlaps or touches made one.
std::vector<Run> Joined(std::vector<Run> runs) {
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.first < b.first; });
  std::vector<Run> joined;
  for (const Run& each : runs) {
    if (!joined.empty() && each.first <= joined.back().last + 1) {
      joined.back().last = std::max(joined.back().last, each.last);
    } else {
      joined.push_back(each);
    }
  }
  return joined;
}

std::string_view WithoutCommas(std::string_view text) {
  while (!text.empty() && text.front() == ',') text.remove_prefix(1);
  while (!text.empty() && text.back() == ',') text.remove_suffix(1);
  return text;
}

}  // namespace

NotGtids::NotGtids(std::string_view text)
    : Error("not a set of GTIDs: '" + std::string(text.substr(0, kShown)) + "'", 0) {}

GtidSet GtidSet::Parse(std::string_view text) {
  std::string packed = text::Lower(text);
  packed.erase(std::remove_if(packed.begin(), packed.end(),
                              [](char c) { return text::Trimmed(std::string_view(&c, 1)).empty(); }),
               packed.end());
  GtidSet set;
  const std::string_view all = packed;
  std::size_t begin = 0;
  // `gtid_owned` puts nothing between the last thread and the next log.
  for (std::size_t at = 1; at <= all.size(); ++at) {
    if (at < all.size() && !HasUuid(all.substr(at))) continue;
    const std::string_view log = WithoutCommas(all.substr(begin, at - begin));
    if (!log.empty()) set.Take(log);
    begin = at;
  }
  set.Join();
  return set;
}

/// Reads `uuid[:tag]:numbers[:numbers...][:tag:numbers...]`.
void GtidSet::Take(std::string_view log) {
  const auto pieces = text::Split(log, ':');
  if (pieces.size() == 1 || pieces.front().size() != kUuid || !HasUuid(pieces.front())) throw NotGtids(log);
  const std::string uuid(pieces.front());
  std::string name = uuid;
  for (std::size_t nth = 1; nth < pieces.size(); ++nth) {
    if (const auto run = RunIn(pieces[nth])) {
      if (run->first <= run->last) logs_[name].push_back(*run);  // One that runs backwards is empty.
    } else if (IsTag(pieces[nth])) {
      name = uuid + ":" + std::string(pieces[nth]);
    } else {
      throw NotGtids(log);
    }
  }
}

void GtidSet::Join() {
  for (auto& [log, runs] : logs_) runs = Joined(std::move(runs));
}

const std::vector<Run>& GtidSet::RunsOf(const std::string& log) const {
  static const auto& none = *new std::vector<Run>;
  const auto found = logs_.find(log);
  return found == logs_.end() ? none : found->second;
}

bool GtidSet::Contains(const std::string& log, std::uint64_t first, std::uint64_t last) const {
  const auto& runs = RunsOf(log);
  return std::any_of(runs.begin(), runs.end(), [&](const Run& each) { return each.Contains(first, last); });
}

bool GtidSet::Covers(const GtidSet& other) const {
  for (const auto& [log, runs] : other.logs_) {
    for (const Run& each : runs) {
      if (!Contains(log, each.first, each.last)) return false;
    }
  }
  return true;
}

GtidSet GtidSet::Union(const GtidSet& other) const {
  GtidSet both = *this;
  for (const auto& [log, runs] : other.logs_) {
    auto& all = both.logs_[log];
    all.insert(all.end(), runs.begin(), runs.end());
  }
  both.Join();
  return both;
}

std::optional<MySqlLog> MySqlLog::Of(std::string_view key) {
  const std::size_t slash = key.find('/');
  const std::string_view name = key.substr(0, slash);
  if (!HasUuid(name)) return std::nullopt;
  if (name.size() != kUuid && (name[kUuid] != ':' || !IsTag(name.substr(kUuid + 1)))) return std::nullopt;
  if (slash == std::string_view::npos) return MySqlLog{std::string(name), 1};
  const std::string_view digits = key.substr(slash + 1);
  const auto first = NumberIn(digits, kDigits);
  if (!first || digits.front() == '0') return std::nullopt;
  return MySqlLog{std::string(name), *first};
}

std::string MySqlLog::key() const { return first == 1 ? name : name + "/" + std::to_string(first); }

void Runs::Learn(const GtidSet& executed, std::uint64_t group_block) {
  const std::lock_guard guard(lock_);
  block_ = group_block;
  for (const auto& [log, known] : executed.logs()) {
    const bool gap = std::any_of(known.begin(), known.end(), [](const Run& each) { return each.first != 1; });
    if (block_ != 0 || gap) {
      runs_[log] = known;
    } else {
      runs_.erase(log);
    }
  }
}

std::uint64_t Runs::FirstOf(const std::string& log, std::uint64_t number) {
  const std::lock_guard guard(lock_);
  const auto known = runs_.find(log);
  if (known == runs_.end()) return block_ == 0 || number <= block_ ? 1 : Begin(log, number);
  auto& runs = known->second;
  const auto run = std::find_if(runs.rbegin(), runs.rend(), [&](const Run& each) { return each.first <= number; });
  if (run == runs.rend()) return Begin(log, number);
  if (number > run->last) {
    if (!OfOneBlock(run->last, number)) return Begin(log, number);
    run->last = number;
  }
  return run->first;
}

bool Runs::OfOneBlock(std::uint64_t one, std::uint64_t other) const {
  return block_ == 0 || (one - 1) / block_ == (other - 1) / block_;
}

std::uint64_t Runs::Begin(const std::string& log, std::uint64_t number) {
  auto& runs = runs_[log];
  const auto after = std::find_if(runs.begin(), runs.end(), [&](const Run& each) { return each.first > number; });
  runs.insert(after, Run{number, number});
  return number;
}

}  // namespace antipode::mysql
