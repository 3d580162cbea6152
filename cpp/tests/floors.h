// What barriers that were called leave to reads, made without them.
#pragma once

#include <memory>
#include <set>
#include <utility>

#include "antipode/clock.h"
#include "barrier/demand.h"
#include "barrier/floor.h"
#include "runtime/allowance.h"

namespace antipode {

inline std::shared_ptr<Demand> DemandOf(std::set<Dependency> wanted, Demand::Proofs proofs = {}) {
  constexpr double kLongS = 60;
  return std::make_shared<Demand>(std::move(wanted), Policies(), std::make_shared<Allowance>(kLongS),
                                  std::move(proofs));
}

inline std::shared_ptr<ReadFloor> FloorOf(const ReadFloor::Demands& demands, const Clock& clock) {
  return std::make_shared<ReadFloor>("posts", demands, nullptr, false, nullptr, clock);
}

}  // namespace antipode
