// The headers that carry lineages, and the members in them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "antipode/members.h"

namespace antipode {

inline constexpr std::string_view kMember = "antipode";
inline constexpr std::string_view kResponseHeader = "antipode-lineage";
inline constexpr std::string_view kSentHeader = "antipode-sent";

/// Puts one value in place of all of a name; none takes them away.
void Replace(Headers& headers, std::string_view name, const std::optional<std::string>& value);

bool HasMember(std::string_view baggage);

}  // namespace antipode
