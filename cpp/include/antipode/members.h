#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/export.h"
#include "antipode/propagation.h"

namespace antipode {

// For shims of messages, and adapters: the member of W3C baggage that carries a lineage, in whatever has headers.

inline constexpr std::string_view kBaggage = "baggage";

/// All values of a name, in any case.
ANTIPODE_EXPORT std::vector<std::string_view> ValuesOf(const Headers& headers, std::string_view name);
/// The texts of our members, decoded; of too many the first, and one that is unreadable.
ANTIPODE_EXPORT std::vector<std::string> Members(const std::vector<std::string_view>& baggage);
/// Baggage without our members; none where it has none.
ANTIPODE_EXPORT std::optional<std::string> WithoutMember(std::string_view baggage);
/// Baggage with a text as its first member, cut at a member's end within what platforms pass on.
ANTIPODE_EXPORT std::string WithMember(std::string_view baggage, std::string_view text);
/// The lineage of a scope, whose own text is `text`, and those that a header has already; shortened as a whole.
ANTIPODE_EXPORT std::string Together(const Scope& scope, const std::string& text,
                                     const std::vector<std::string>& there);

}  // namespace antipode
