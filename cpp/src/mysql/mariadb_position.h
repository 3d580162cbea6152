// A position or a `gtid_binlog_state` of MariaDB. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace antipode::mysql {

/// The numbers of one server in one domain, which are never given twice.
struct MariaDbLog {
  std::uint64_t domain = 0;
  std::uint64_t server = 0;

  /// None where the key is none of MariaDB's.
  static std::optional<MariaDbLog> Of(std::string_view key);
  [[nodiscard]] std::string key() const { return std::to_string(domain) + "." + std::to_string(server); }
};
inline bool operator<(const MariaDbLog& a, const MariaDbLog& b) {
  return std::pair(a.domain, a.server) < std::pair(b.domain, b.server);
}

class MariaDbPosition {
 public:
  /// Reads `domain-server-number` with commas between. Throws NotGtids.
  static MariaDbPosition Parse(std::string_view text);

  /// Of each log the last number.
  [[nodiscard]] const std::map<MariaDbLog, std::uint64_t>& last() const& { return last_; }
  void last() && = delete;  // It would not outlive the position.
  /// Whether the history has a number: those of one server rise in a domain.
  [[nodiscard]] bool Reaches(const MariaDbLog& log, std::uint64_t number) const;
  [[nodiscard]] bool Knows(const MariaDbLog& log) const { return last_.count(log) != 0; }
  /// The highest number of a domain; none where it has none.
  [[nodiscard]] std::optional<std::uint64_t> Highest(std::uint64_t domain) const;
  /// Whether the numbers of a domain went on to one or past it.
  [[nodiscard]] bool IsPast(std::uint64_t domain, std::uint64_t number) const;
  /// Whether the history goes as far as another in every log; in every domain.
  [[nodiscard]] bool Covers(const MariaDbPosition& other) const;
  [[nodiscard]] bool CoversDomains(const MariaDbPosition& other) const;

 private:
  std::map<MariaDbLog, std::uint64_t> last_;
};

}  // namespace antipode::mysql
