// The headers that carry lineages, and the members in them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/propagation.h"

namespace antipode {

inline constexpr std::string_view kMember = "antipode";
inline constexpr std::string_view kBaggage = "baggage";
inline constexpr std::string_view kResponseHeader = "antipode-lineage";
inline constexpr std::string_view kSentHeader = "antipode-sent";

/// All values of a name, in any case.
std::vector<std::string_view> ValuesOf(const Headers& headers, std::string_view name);
/// Puts one value in place of all of a name; none takes them away.
void Replace(Headers& headers, std::string_view name, const std::optional<std::string>& value);

/// The values of our members, decoded; of too many the first, and one that is unreadable.
std::vector<std::string> Members(const std::vector<std::string_view>& baggage);
bool HasMember(std::string_view baggage);
/// Without our members; none where it has none.
std::optional<std::string> WithoutMember(std::string_view baggage);

}  // namespace antipode
