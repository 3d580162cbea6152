// Verdicts of level 3: what a dry run records of the steps of one request.
#pragma once

#include "json.h"

namespace antipode::agent {

using json::Json;

/// The reads that were judged, the guards that travel on, and the reads that miss what one expects them to see.
Json JudgeReads(const Json& given);

}  // namespace antipode::agent
