// For who measures: how large lineages are wherever one is received, and how long calls take. With SOCIAL_GRAPH_HOPS in
// the environment each process says so.
#pragma once

#include <vector>

#include "antipode/grpc.h"
#include "antipode/propagation.h"

namespace social_graph {

/// Of the calls that a channel makes; none where nobody measures.
std::vector<antipode::rpc::ClientInterceptorFactory> CallsTimed();
/// Of the calls that a server gets; none where nobody measures.
std::vector<antipode::rpc::ServerInterceptorFactory> CallsMeasured();
/// Of a message; nothing where nobody measures.
void MeasureMessage(const antipode::Headers& headers);

}  // namespace social_graph
