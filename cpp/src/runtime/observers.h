// Counts and warnings: what must never pass unseen.
#pragma once

#include <string>
#include <string_view>

#include "antipode/observer.h"

namespace antipode {

/// Counts something of a datastore or service.
void Count(std::string_view metric, std::string_view subject = {});
/// Warns, once for each metric, subject and site.
void WarnOnce(std::string_view metric, std::string_view subject, std::string_view site, const std::string& message);

}  // namespace antipode
