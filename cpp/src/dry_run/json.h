// What records say, as JSON without blanks and in ASCII.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/outcomes.h"
#include "runtime/places.h"

namespace antipode::dry_run::json {

/// A text of UTF-8; what is none in it becomes U+FFFD.
std::string Text(std::string_view value);
std::string TextOrNull(const std::optional<std::string>& value);
std::string Seconds(std::optional<double> value);
std::string Texts(const std::set<std::string>& values);
std::string Write(const Dependency& found);
std::string Site(const Place& place);
/// A list, each once, in an order that depends on nothing else.
std::string Writes(const std::vector<Dependency>& found);

}  // namespace antipode::dry_run::json
