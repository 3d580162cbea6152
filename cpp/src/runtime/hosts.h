// Which hosts `egress_hosts` and `peers` name, however a name or an address is spelled.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "antipode/settings.h"

namespace antipode::hosts {

/// Whether an entry of `egress_hosts` names no host, so that it would never match one.
bool Refused(std::string_view entry);
/// Whether one of `allowed` names this host. A port after it counts where `port` is none.
bool Names(const std::set<std::string>& allowed, std::string_view host, std::optional<unsigned> port);

/// Whether an entry of `peers` names no host.
bool PeerRefused(std::string_view entry);
/// What `peers` says of a call, and the path of the entry that says it: the most exact host counts, then the longest
/// path.
std::pair<Answers, std::string> Expected(const std::map<std::string, Answers>& peers, std::string_view host,
                                         std::optional<unsigned> port, std::string_view path);

}  // namespace antipode::hosts
