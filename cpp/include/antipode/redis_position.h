#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "antipode/export.h"
#include "antipode/lineage.h"
#include "antipode/shim.h"

namespace antipode::redis {

// Positions for a client of your own, such as redis++ or Boost.Redis. No I/O: you send `INFO replication`, on the
// connection that wrote or will read, and have what it answers judged here.
//
//     const auto after = antipode::redis::StateOf(info);                    // after the write
//     antipode::CurrentScope()->Merge(antipode::redis::OfWrite("posts", after));

/// What `INFO replication` says.
struct ServerState {
  bool primary = false;
  std::string log;               ///< The history it is on.
  std::uint64_t offset = 0;      ///< Bytes of that history that it has applied.
  std::string former_log;        ///< The history it was on before; empty where it knows none.
  std::uint64_t former_end = 0;  ///< The first offset of that which it does not share; 0 for none.
  bool link_up = false;          ///< Of a replica: connected to its primary.
  bool syncing = false;          ///< Of a replica: its whole data is being replaced.
  bool read_only = false;        ///< Of a replica: it takes no writes.
  bool numbering = false;        ///< Offsets advance: not on a primary that never had a replica.

  [[nodiscard]] bool BeingReplaced() const { return !primary && syncing; }
  [[nodiscard]] bool RefusesWrites() const { return !primary && read_only; }
};

/// None where the answer lacks what a position needs.
ANTIPODE_EXPORT std::optional<ServerState> StateOf(std::string_view info);

/// What enters a scope for a write, by where its server stands after it; none where it did not say.
ANTIPODE_EXPORT Lineage OfWrite(const std::string& datastore, const std::optional<ServerState>& after);
/// For a command that may have written, by where its server stood before and after it.
ANTIPODE_EXPORT Lineage OfUnknown(const std::string& datastore, const std::optional<ServerState>& before,
                                  const std::optional<ServerState>& after);
/// For a read, by where its server stands after it: an upper bound of what it has seen.
ANTIPODE_EXPORT Lineage OfRead(const std::string& datastore, const std::optional<ServerState>& after);

/// What a server shows of writes, for `Endpoint::Observe` of a `Store` of yours.
ANTIPODE_EXPORT Observation Shown(const ServerState& state, const std::set<WriteId>& writes);

}  // namespace antipode::redis
