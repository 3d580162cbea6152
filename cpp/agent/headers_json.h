// Vectors of level 3: what headers say and carry, how calls end, scopes and hosts.
#pragma once

#include <optional>
#include <string>

#include "json.h"

namespace antipode::json {

/// What C++ makes of one vector of a kind, without what the vector expects; none where C++ has nothing of the kind.
std::optional<Json> DecideHeaders(const std::string& kind, const Json& given);

}  // namespace antipode::json
