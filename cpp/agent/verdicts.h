// Verdicts of level 3: what a dry run records of the steps of one request.
#pragma once

#include "json.h"

namespace antipode::agent {

using json::Json;

/// The reads that were judged, and the guards that travel on.
Json JudgeReads(const Json& given);

}  // namespace antipode::agent
