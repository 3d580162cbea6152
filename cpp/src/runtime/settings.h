// The settings in force, as the rooms of the library have them.
#pragma once

#include <memory>

#include "antipode/settings.h"

namespace antipode {

/// The settings in force, without a copy: another configuration is another object.
std::shared_ptr<const Settings> SettingsInForce();

}  // namespace antipode
