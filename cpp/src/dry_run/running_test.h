// The test that runs, which records name.
#pragma once

#include <optional>
#include <string>

namespace antipode::dry_run {

/// None where no test does.
std::optional<std::string> RunningTest();

}  // namespace antipode::dry_run
