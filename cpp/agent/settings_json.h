// Settings as the conformance agent and the vectors spell them in JSON.
#pragma once

#include "antipode/settings.h"
#include "json.h"

namespace antipode::json {

/// `base` with the settings that are given.
Settings SettingsOf(const Json& given, Settings base);
Mode ModeOf(const Json& found);
std::optional<Policy> PolicyOf(const Json& found);
Json Of(const Settings& settings);

}  // namespace antipode::json
