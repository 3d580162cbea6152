// Vectors of session cookies, of level 3.
#pragma once

#include "json.h"

namespace antipode::json {

/// What requests of a user start from, and what their responses do to the cookie. Settings are those in force.
Json Sessions(const Json& given);
#ifdef ANTIPODE_SESSION_KEYS
/// The signature of a content by the first of some keys, and what they make of a value.
Json SessionSignature(const Json& given);
#endif

}  // namespace antipode::json
