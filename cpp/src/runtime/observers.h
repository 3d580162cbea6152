// Counts and warnings: what must never pass unseen.
#pragma once

#include <string>

#include "antipode/errors.h"
#include "antipode/observer.h"

namespace antipode {

/// Counts a read that was answered although it was not shown all that its request depends on, and says so.
void CountServed(const std::string& datastore, const AntipodeError& error);

}  // namespace antipode
