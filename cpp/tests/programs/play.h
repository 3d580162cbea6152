// Plays random sessions, and judges each step by what the servers have: lost, early, broken, or an alarm.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench.h"

namespace antipode::programs {

/// How the steps of one store ended.
struct Line {
  int steps = 0;
  std::map<std::string, int> faults{{"lost", 0}, {"early", 0}, {"broken", 0}};
  std::map<std::string, int> alarms;  ///< What was said without need, by the kind of the step.
  std::vector<std::string> notes;
};

/// Plays sessions until they had so many steps. Replication is held and released by who reads `stdout`: a line each,
/// answered by a line.
Line Play(Bench& bench, int steps, std::uint32_t seed);

}  // namespace antipode::programs
