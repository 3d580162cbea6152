// From values to the text and back (specification, lineage format).
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "antipode/lineage.h"

namespace antipode::codec {

/// The parts of a text, or why it is no lineage. Total, and linear in the length of the text.
std::variant<Lineage::Data, DecodeFault> Decode(std::string_view text);

/// The canonical text.
std::string Encode(const Lineage::Data& data);
/// The canonical text of what such a text says, and of one more mark.
std::string WithMark(std::string_view text, const Incomplete& mark);

/// Whether an item is of a kind that this version gives no meaning, or carries a text of another version.
bool IsUnknownItem(std::string_view item);

/// The newest mint hour of all writes, and the header that says it.
std::uint64_t NewestHour(const Lineage::Data& data);
std::string Header(std::uint64_t newest_h);

/// Single items, as they are under a header with this hour.
std::string Item(const WriteId& write, std::uint64_t newest_h);
std::string Item(const Incomplete& mark);
std::string Item(const Promise& promise);
std::string OpenItem(std::uint64_t open_branches);

}  // namespace antipode::codec
