#include "mongodb/proof.h"

#include <algorithm>
#include <variant>

namespace antipode::mongodb {

Proof::Proof(const Floor& floor) {
  for (const Promise& each : floor.promises()) promises_.insert(each.id);
  for (const WriteId& each : floor.writes()) {
    const auto* version = std::get_if<std::uint64_t>(&each.version);
    if (version == nullptr) continue;
    auto& latest = positions_[each.key];
    latest = std::max(latest, *version);
  }
}

bool Proof::Covers(const Floor& floor) const {
  const std::set<WriteId> writes = floor.writes();
  return Keeps(floor) && std::all_of(writes.begin(), writes.end(), [this](const WriteId& each) {
           const auto* version = std::get_if<std::uint64_t>(&each.version);
           const auto shown = positions_.find(each.key);
           return version != nullptr && shown != positions_.end() && *version <= shown->second;
         });
}

bool Proof::Keeps(const Floor& floor) const {
  const std::set<Promise> promises = floor.promises();
  return std::all_of(promises.begin(), promises.end(),
                     [this](const Promise& each) { return promises_.count(each.id) > 0; });
}

bool Proof::Until(std::uint64_t version) const {
  return std::all_of(positions_.begin(), positions_.end(),
                     [version](const auto& position) { return position.second <= version; });
}

}  // namespace antipode::mongodb
