// Lineages as text: bounded on the way out, never empty by mistake on the way in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "antipode/settings.h"
#include "antipode/stored.h"

namespace antipode {

/// What is left of a lineage that may have come from elsewhere: decoding asks no clock.
Lineage ReceivedLineage(const Lineage& lineage);
/// A lineage as it may leave this process, with the notes of a dry run. What is left out is counted.
std::string LeavingText(const Lineage& lineage, const std::set<std::string>& notes = {});
std::string LeavingText(const Lineage& lineage, const Settings& settings);

/// A text that left, and of what it was.
struct LeavingCache {
  Lineage lineage;
  std::uint64_t branches = 0;
  std::shared_ptr<const Settings> settings;
  std::string text;

  [[nodiscard]] bool Holds(const Lineage& now, std::uint64_t running,
                           const std::shared_ptr<const Settings>& in_force) const noexcept {
    return settings == in_force && branches == running && lineage.IsCopyOf(now);
  }
};

}  // namespace antipode
