// Scripts of level 4, over fake stores on a virtual clock.
#pragma once

#include <memory>

#include "json.h"

namespace antipode::agent {

using json::Json;

class FakeStore;
class VirtualClock;

/// Makes a store that follows a script, and registers it.
std::shared_ptr<FakeStore> StoreOf(const Json& found, VirtualClock& clock);

/// Runs a script to its end; what came of it, as the specification of the agent has it.
Json RunScript(const Json& script);

}  // namespace antipode::agent
