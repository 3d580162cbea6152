// Counts and warnings: what must never pass unseen.
#pragma once

#include <string>
#include <string_view>

#include "antipode/errors.h"
#include "antipode/observer.h"

namespace antipode {

/// Warns, once a minute at most for each metric and datastore.
void WarnSeldom(std::string_view metric, const std::string& datastore, const std::string& message);
/// Counts a read that was answered although it was not shown all that its request depends on, and says so.
void CountServed(const std::string& datastore, const AntipodeError& error);

}  // namespace antipode
