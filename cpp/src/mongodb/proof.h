// What the snapshot of a session is known to show. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "antipode/floor.h"

namespace antipode::mongodb {

/// The latest position of each log, and promises.
class Proof {
 public:
  Proof() = default;
  /// What a read demands.
  explicit Proof(const Floor& floor);

  /// Whether it reaches all that a read demands.
  [[nodiscard]] bool Covers(const Floor& floor) const;
  /// Whether it names every promise that a read demands.
  [[nodiscard]] bool Keeps(const Floor& floor) const;
  /// Whether no position is after a time.
  [[nodiscard]] bool Until(std::uint64_t version) const;

 private:
  std::map<std::string, std::uint64_t> positions_;
  std::set<std::string> promises_;
};

}  // namespace antipode::mongodb
