// Values as the vectors and the conformance agent spell them in JSON, and back.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "antipode/lineage.h"

namespace antipode::json {

using Json = nlohmann::json;

WriteId WriteOf(const Json& found);
Lineage LineageOf(const Json& found);
/// What is empty is left out.
Json Of(const Lineage& lineage);
Json Of(const WriteId& write);
Json Of(const Promise& promise);
Promise PromiseOf(const Json& found);

/// Runs the steps of a script of level 2; what each came to.
Json Algebra(const Json& steps);

}  // namespace antipode::json
