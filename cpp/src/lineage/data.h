// What a Lineage holds, and the algebra that keeps it small.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "antipode/lineage.h"

namespace antipode {

/// A write, and whether an equal one was recorded in this process rather than read from a text. Order and equality
/// of lineages ignore it; shortening does not.
struct Entry {
  WriteId write;
  bool recorded = false;
};

/// Datastore and key, and for an opaque version also the version.
using Slot = std::tuple<std::string, std::string, std::optional<std::string>>;

/// The largest exact and the largest covering version of a slot.
struct Kept {
  std::optional<Entry> exact;
  std::optional<Entry> covering;
};

struct Lineage::Data {
  std::map<Slot, Kept> slots;
  std::set<Incomplete> incomplete;
  std::map<std::pair<std::string, std::string>, std::uint64_t> promises;  ///< Expiry by datastore and id.
  std::uint64_t open_branches = 0;
  std::set<std::string> unknown;

  void Add(Entry entry);
  void Add(const Promise& promise);
  void Add(const Data& other);
  /// At least as many as there are items.
  [[nodiscard]] std::size_t MostItems() const;
  /// All entries, exact before covering in a slot.
  [[nodiscard]] std::vector<Entry> Entries() const;
  [[nodiscard]] std::vector<Promise> Promises() const;
};

}  // namespace antipode
