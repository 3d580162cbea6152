// Counts and warnings: what must never pass unseen.
#pragma once

#include <string>
#include <string_view>

#include "antipode/errors.h"
#include "antipode/observer.h"

namespace antipode {

/// Counts something of a datastore or service.
void Count(std::string_view metric, std::string_view subject = {});
/// Counts a read that was answered although it was not shown all that its request depends on, and says so.
void CountServed(const std::string& datastore, const AntipodeError& error);
/// Warns, once for each metric, subject and site.
void WarnOnce(std::string_view metric, std::string_view subject, std::string_view site, const std::string& message);

}  // namespace antipode
