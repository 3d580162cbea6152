// What makes a promise the same one, whenever it expires: its id and its datastore, in one text.
#pragma once

#include <cstddef>
#include <string>

namespace antipode {

/// How long an id is, which comes first.
inline constexpr std::size_t kPromiseIdLength = 32;

inline std::string PromiseName(const std::string& datastore, const std::string& id) { return id + "." + datastore; }

}  // namespace antipode
