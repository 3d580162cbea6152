// What this library puts into the headers of messages and finds there. No I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "antipode/lineage.h"
#include "antipode/propagation.h"

namespace antipode::rabbitmq {

inline constexpr std::string_view kWriteHeader = "antipode-write";      ///< The message's own write.
inline constexpr std::string_view kPromiseHeader = "antipode-promise";  ///< The token of what it fulfils.
/// Stands for a header that is no text: one that nobody can read.
inline constexpr std::string_view kNoText = "antipode=?";

/// What a message says of itself: what it depends on, and its own write.
struct Received {
  Lineage causes;
  std::optional<WriteId> write;

  /// What its consumer depends on.
  [[nodiscard]] Lineage lineage() const { return write ? causes.Append(*write) : causes; }
  /// The latest publication of its own publisher that it depends on; 0 for none.
  [[nodiscard]] std::uint64_t After() const;
};

/// What cannot be read is the mark (`datastore`, `unreadable`).
Received ReceivedOf(const Headers& headers, const std::string& datastore);
/// Whether a message says anything of this library's: what its publisher had in its scope, or its own write.
bool HasLineage(const Headers& headers);
/// The message's own write; none where it names none. Throws LineageDecodeError, or std::invalid_argument where it
/// names no single write with a number.
std::optional<WriteId> OwnWrite(const Headers& headers);
/// The promise that the message fulfils; none where it fulfils none. Throws LineageDecodeError.
std::optional<Promise> OwnPromise(const Headers& headers);

}  // namespace antipode::rabbitmq
