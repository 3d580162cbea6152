// gRPC metadata: what of ours is in it, what goes into it, and how much it may hold. Without gRPC's types.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/propagation.h"

namespace antipode::rpc {

using Entries = std::multimap<std::string, std::string>;

inline constexpr char kBaggage[] = "baggage";
inline constexpr char kSent[] = "antipode-sent";
inline constexpr char kLineage[] = "antipode-lineage";
/// What gRPC puts into a request that it sends again by a retry policy.
inline constexpr char kAttempts[] = "grpc-previous-rpc-attempts";

/// Lets the entries of a request carry the lineage of `call`, shortened to what fits with everything else.
/// `fixed` is how many characters of method and target are sent as well.
void Outfit(const OutgoingCall& call, Entries& entries, std::size_t fixed);

/// Takes the lineages out of trailing metadata.
std::vector<std::string> TakeLineages(Entries& entries);
/// Whether trailing metadata are so large that an answer may have found no room in them.
bool MayHaveLostAnswer(const Entries& entries);
/// The bytes that a lineage may have in addition to other trailing metadata and a status message.
std::size_t TrailingRoom(const Entries& others, std::string_view message);
/// A text as one of at most so many bytes; empty where that is too little.
std::string Fitting(const std::string& text, std::size_t room);

}  // namespace antipode::rpc
