#pragma once

#include <memory>
#include <string>
#include <vector>

#include "antipode/export.h"
#include "antipode/session.h"

namespace antipode {

/// What signs session cookies and tokens by OpenSSL's HMAC, with the first of some keys, and believes them all:
/// `SignerOf` says what they are. Throws ConfigurationError where there is none, or one is too short.
ANTIPODE_EXPORT std::shared_ptr<const SessionSigner> SessionKeys(const std::vector<std::string>& keys);

}  // namespace antipode
