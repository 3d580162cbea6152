// Names of publications: which publisher, and which of its publications. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace antipode::rabbitmq {

/// Seconds after which a publisher ends: who begins to listen cannot judge those that were born before.
inline constexpr double kRollS = 60;

/// A random UUID that states its birth (RFC 9562, version 7).
std::string NewPublisher(std::uint64_t unix_ms);
/// When a publisher began, in Unix seconds of its clock; none where its name does not state it.
std::optional<double> BornAt(const std::string& publisher);

/// The publishers of one opening of a channel: one for each lane, for at most a minute each. Readers accept a
/// publication where they saw all before it, so that whatever may leave a hole ends its publisher.
class Publications {
 public:
  using Name = std::pair<std::string, std::uint64_t>;
  /// The next publication's name; it must be published, or its lane ended.
  Name Next(const std::string& lane, double now_s, std::uint64_t unix_ms);
  void End(const std::string& lane) { open_.erase(lane); }

 private:
  struct Publisher {
    std::string key;
    double since_s;
    std::uint64_t last = 0;
  };
  std::map<std::string, Publisher> open_;
};

}  // namespace antipode::rabbitmq
