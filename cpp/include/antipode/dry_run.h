#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "antipode/export.h"

namespace antipode {

// A dry run is begun by `Settings::mode` alone. These are for who tests with one.

/// For test frameworks: the test that runs from now on, which records name; none: no test does.
ANTIPODE_EXPORT void SetRunningTest(const std::optional<std::string>& test);

/// For test frameworks: waits until each read that is over was checked once, but no longer than so long. Before a
/// test closes its stores.
ANTIPODE_EXPORT void SettleDryRun(std::chrono::duration<double> timeout);

}  // namespace antipode
