// What is known of a channel by its target and its arguments, and of a call by its message. Without gRPC's types.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace antipode::rpc {

/// The hosts that a target names, with their ports; `localhost` for this machine's sockets.
std::vector<std::string> HostsOf(std::string_view target);
/// Whether the target's resolver may bring a policy of retries that no argument shows.
bool ResolvesPolicies(std::string_view target);
/// The full name of the service of a method, `/package.Service/Method`.
std::string ServiceOf(std::string_view method);
/// Whether gRPC's message says that it found no connection to send a call on.
bool SaysUnsent(std::string_view message);

}  // namespace antipode::rpc
