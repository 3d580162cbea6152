// Scripts of level 4, over fake stores on a virtual clock.
#pragma once

#include "json.h"

namespace antipode::agent {

using json::Json;

/// Runs a script to its end; what came of it, as the specification of the agent has it.
Json RunScript(const Json& script);

}  // namespace antipode::agent
