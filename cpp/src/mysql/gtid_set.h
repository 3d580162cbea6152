// GTIDs of MySQL: sets of them, and the runs of numbers that writes stand for. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/mysql.h"

namespace antipode::mysql {

/// A text is no GTID, and no set of them.
class NotGtids final : public Error {
 public:
  explicit NotGtids(std::string_view text);
};

/// Consecutive transaction numbers, both ends included.
struct Run {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  [[nodiscard]] bool Contains(std::uint64_t from, std::uint64_t to) const { return first <= from && to <= last; }
};

/// A set of GTIDs.
class GtidSet {
 public:
  /// The set that `gtid_executed`, `gtid_owned` or a reply spells. Throws NotGtids.
  static GtidSet Parse(std::string_view text);

  /// Of each log, `uuid` or `uuid:tag`, its runs in order, of which none touches the next.
  [[nodiscard]] const std::map<std::string, std::vector<Run>>& logs() const& { return logs_; }
  void logs() && = delete;  // It would not outlive the set.
  [[nodiscard]] const std::vector<Run>& RunsOf(const std::string& log) const;
  [[nodiscard]] bool Contains(const std::string& log, std::uint64_t first, std::uint64_t last) const;
  /// Whether all of another set is in this one.
  [[nodiscard]] bool Covers(const GtidSet& other) const;
  /// What is in either.
  [[nodiscard]] GtidSet Union(const GtidSet& other) const;

 private:
  void Take(std::string_view log);
  void Join();
  std::map<std::string, std::vector<Run>> logs_;
};

/// What the key of a write to MySQL names.
struct MySqlLog {
  std::string name;         ///< `uuid` or `uuid:tag`.
  std::uint64_t first = 1;  ///< The number from which on the version stands for a run; 1 but after a gap.

  /// None where the key is none of MySQL's.
  static std::optional<MySqlLog> Of(std::string_view key);
  [[nodiscard]] std::string key() const;
};

/// Where the run of consecutive numbers begins that a new transaction belongs to. Thread-safe.
///
/// Waiting for `1-N` never ends where a gap below N stays open, and waiting for N alone succeeds while those before it
/// are missing. So after a gap a write stands for the run that its number is in. A member of a group numbers within
/// blocks, and where these lie is not reported: a number of a block that was not seen before begins a run.
class Runs {
 public:
  /// Takes over what a server has executed; `group_block` is the size of its blocks for a member of a group, else 0.
  void Learn(const GtidSet& executed, std::uint64_t group_block);
  /// The first number of the run that a number of a log is in.
  std::uint64_t FirstOf(const std::string& log, std::uint64_t number);

 private:
  [[nodiscard]] bool OfOneBlock(std::uint64_t one, std::uint64_t other) const;
  std::uint64_t Begin(const std::string& log, std::uint64_t number);
  std::mutex lock_;
  std::map<std::string, std::vector<Run>> runs_;  ///< Of logs with gaps; the run of any other begins at 1.
  std::uint64_t block_ = 0;
};

}  // namespace antipode::mysql
