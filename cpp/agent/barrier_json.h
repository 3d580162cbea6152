// Barriers and their results as the conformance agent and the vectors spell them in JSON.
#pragma once

#include <optional>
#include <string>

#include "antipode/barrier.h"
#include "json.h"

namespace antipode::json {

/// `at`, `only`, `exclude`, the policies and `mode`.
BarrierOptions BarrierOptionsOf(const Json& given);
/// The lineage of a text that a barrier gets: in a dry run none is unreadable.
Lineage Received(const std::string& text, std::optional<Mode> mode);
Status StatusOf(const Json& found);
Json Of(const BarrierResult& result);

}  // namespace antipode::json
