// The companion key: a value's lineage in a second key, and how to know that it is still its own. No I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "antipode/lineage.h"

namespace antipode::redis {

/// How a value and its companion go together.
enum class Match { kOwn, kAbsent, kForeign, kUnreadable };
/// The word of the specification, by which it is counted.
std::string_view NameOf(Match match);

/// What a reply shows of a value: the whole string, or that there is none; a part; that nothing of it is there.
enum class Extent { kWhole, kPart, kNothing };

using Text = std::optional<std::string>;

/// The companion of a string, or of a deletion.
std::string Packed(std::optional<std::string_view> value, std::string_view lineage);
/// The lineage that a companion has for what was shown of a value. What is unreadable is counted.
std::pair<Lineage, Match> Unpacked(const Text& value, Extent shown, const Text& companion,
                                   const std::string& datastore);

}  // namespace antipode::redis
