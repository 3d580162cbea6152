#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/errors.h"
#include "antipode/export.h"
#include "antipode/write_id.h"

namespace antipode {

/// What a lineage is made of.
struct LineageParts {
  std::vector<WriteId> writes;
  std::vector<Incomplete> incomplete;
  std::vector<Promise> promises;
  std::uint64_t open_branches = 0;
  std::vector<std::string> unknown;  ///< Items of kinds that this version gives no meaning, as they came.
};

/// How much of a lineage may leave, and what of it.
struct Bound {
  std::size_t max_bytes = 1024;                      ///< The nine bytes of `antipode=` count.
  std::optional<std::set<std::string>> egress = {};  ///< Datastores that may be named; none: all may.
  std::set<std::string> notes = {};                  ///< Of a dry run: what travels besides, where it fits.
};

/// The writes that a request has made or seen, with marks for whatever is known to be missing.
///
/// An immutable value, cheap to copy and safe to share between threads: every operation returns a new one. It keeps
/// the largest exact and the largest covering version of each log, and `Merge` is associative, commutative and
/// idempotent (specification, lineage format).
///
///     antipode::Lineage lineage = request.Append({"posts", log, std::uint64_t{7}});
///     response.Set("antipode", lineage.Serialize());
class ANTIPODE_EXPORT Lineage {
 public:
  /// Knows of nothing.
  Lineage();
  /// Has these parts, put under the algebra. Throws std::invalid_argument where one could not be put on the wire.
  explicit Lineage(const LineageParts& parts);
  Lineage(std::initializer_list<WriteId> writes);

  /// The lineage of a text, or none; `*fault` then says why. Never throws.
  [[nodiscard]] static std::optional<Lineage> TryDeserialize(std::string_view text, DecodeFault* fault = nullptr);
  /// As `TryDeserialize`, but throws LineageDecodeError.
  static Lineage Deserialize(std::string_view text);

  /// The canonical text: equal lineages have equal texts.
  [[nodiscard]] std::string Serialize() const;
  /// The canonical text of as much as fits, with marks of what did not. Throws LineageTooLarge. `*whole` then says
  /// whether that is certainly all of it.
  [[nodiscard]] std::string Serialize(const Bound& bound, bool* whole = nullptr) const;

  /// With a write that this process recorded.
  [[nodiscard]] Lineage Append(const WriteId& write) const;
  /// Without the entries of this datastore, key and version, exact and covering.
  [[nodiscard]] Lineage Remove(const WriteId& write) const;
  /// With all that the other one has.
  [[nodiscard]] Lineage Merge(const Lineage& other) const;
  /// With what there is of these datastores, and the marks of nobody in particular.
  [[nodiscard]] Lineage Only(const std::set<std::string>& datastores) const;
  /// With what may be named outside of this process, which is what is of these datastores; with a mark where there is
  /// more.
  [[nodiscard]] Lineage Allowed(const std::set<std::string>& egress) const;
  /// What it has and the other one, which came first, has not: nobody gets what they sent.
  [[nodiscard]] Lineage Beyond(const Lineage& came) const;
  /// Without the promises of these ids, each with `.` and its datastore after it.
  [[nodiscard]] Lineage WithoutPromises(const std::set<std::string>& ids) const;
  /// Without what a dry run sends along: it is of one request, and never stored.
  [[nodiscard]] Lineage WithoutNotes() const;
  /// With a mark that something is missing.
  [[nodiscard]] Lineage Marked(const Incomplete& mark) const;

  /// What is left of it where it came in a text: no hour is after `now_h`, and no promise expires after `latest_s`.
  [[nodiscard]] Lineage Received(std::uint64_t now_h, std::uint64_t latest_s) const;
  /// As much of it as a scope holds, with marks of what it does not.
  [[nodiscard]] Lineage Holdable() const;

  /// The entries, sorted by datastore, key and version.
  [[nodiscard]] std::vector<WriteId> writes() const;
  [[nodiscard]] const std::set<Incomplete>& incomplete() const noexcept;
  /// The promises, sorted by datastore and id.
  [[nodiscard]] std::vector<Promise> promises() const;
  [[nodiscard]] std::uint64_t open_branches() const noexcept;
  [[nodiscard]] const std::set<std::string>& unknown() const noexcept;
  /// Whether nothing is known and nothing is missing.
  [[nodiscard]] bool empty() const noexcept;

  ANTIPODE_EXPORT friend bool operator==(const Lineage& a, const Lineage& b);
  friend bool operator!=(const Lineage& a, const Lineage& b) { return !(a == b); }

  /// Whether it is a copy of the other one, which says more than that they are equal, and costs nothing.
  [[nodiscard]] bool IsCopyOf(const Lineage& other) const noexcept { return data_ == other.data_; }

  /// For the codec.
  struct Data;
  explicit Lineage(std::shared_ptr<const Data> data) noexcept;

 private:
  std::shared_ptr<const Data> data_;
};

}  // namespace antipode
