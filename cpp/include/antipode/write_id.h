#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "antipode/export.h"

namespace antipode {

/// The largest mint hour (36^5 - 1) and the largest second at which a promise expires (36^8 - 1).
inline constexpr std::uint64_t kMaxHour = 60'466'175;
inline constexpr std::uint64_t kMaxExpiry = 2'821'109'907'455;

/// What a datastore issued for a write: a position, or a text of which nothing is known.
using Version = std::variant<std::uint64_t, std::string>;

/// One committed write: a key and the version that its datastore issued.
///
/// Where a datastore has logs, `key` is the log's name and `version` a position in it; one write then stands for all
/// before it. All texts are UTF-8. A value that could not be put on the wire is refused when it is put into a
/// `Lineage`.
struct WriteId {
  std::string datastore;           ///< The name that every service spells alike; not empty.
  std::string key;                 ///< The key that was written, or the log's name.
  Version version;                 ///< Issued by the store.
  std::uint64_t written_hour = 0;  ///< The Unix hour in which the write was acknowledged; 0 where it is not known.
  bool covering = false;           ///< Whether the position was sampled after a read, rather than issued for a write.
};

inline bool operator==(const WriteId& a, const WriteId& b) {
  return std::tie(a.datastore, a.key, a.version, a.written_hour, a.covering) ==
         std::tie(b.datastore, b.key, b.version, b.written_hour, b.covering);
}
inline bool operator<(const WriteId& a, const WriteId& b) {
  return std::tie(a.datastore, a.key, a.version, a.written_hour, a.covering) <
         std::tie(b.datastore, b.key, b.version, b.written_hour, b.covering);
}
inline bool operator!=(const WriteId& a, const WriteId& b) { return !(a == b); }

/// A branch of the request that will still write.
struct Promise {
  std::string datastore;        ///< Where the branch records that it has written.
  std::string id;               ///< 32 lower-case hexadecimal digits.
  std::uint64_t expires_s = 0;  ///< The Unix second after which it counts as abandoned.
};

inline bool operator==(const Promise& a, const Promise& b) {
  return std::tie(a.datastore, a.id, a.expires_s) == std::tie(b.datastore, b.id, b.expires_s);
}
inline bool operator<(const Promise& a, const Promise& b) {
  return std::tie(a.datastore, a.id, a.expires_s) < std::tie(b.datastore, b.id, b.expires_s);
}
inline bool operator!=(const Promise& a, const Promise& b) { return !(a == b); }

/// A mark that something is known to be missing.
struct Incomplete {
  std::string subject;  ///< A datastore or a service; empty where it is not known.
  std::string reason;   ///< A word of the specification, such as `in_doubt`.
};

inline bool operator==(const Incomplete& a, const Incomplete& b) {
  return std::tie(a.subject, a.reason) == std::tie(b.subject, b.reason);
}
inline bool operator<(const Incomplete& a, const Incomplete& b) {
  return std::tie(a.subject, a.reason) < std::tie(b.subject, b.reason);
}
inline bool operator!=(const Incomplete& a, const Incomplete& b) { return !(a == b); }

/// The reasons that the core itself gives.
inline constexpr std::string_view kSize = "size";
inline constexpr std::string_view kPromise = "promise";
inline constexpr std::string_view kEgress = "egress";

}  // namespace antipode
