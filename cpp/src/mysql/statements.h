// What a statement may do, read from its text alone. Where the text leaves a choice it may do more rather than less: a
// read that is held back without need costs a round trip, one that is missed is stale. No I/O.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace antipode::mysql {

/// What a statement may do; any of these.
using Effects = unsigned;
inline constexpr Effects kReads = 1U << 0;        ///< Data: such a read waits.
inline constexpr Effects kWrites = 1U << 1;       ///< Data.
inline constexpr Effects kCommits = 1U << 2;      ///< What is open, or what it does itself, whatever autocommit says.
inline constexpr Effects kEnds = 1U << 3;         ///< The open transaction, where it succeeds.
inline constexpr Effects kBegins = 1U << 4;       ///< A transaction.
inline constexpr Effects kSnapshot = 1U << 5;     ///< Takes one at once.
inline constexpr Effects kMaySnapshot = 1U << 6;  ///< Although it shows nothing that anybody waits for.
inline constexpr Effects kIsolation = 1U << 7;    ///< May change that of this or later transactions.
inline constexpr Effects kNextOnly = 1U << 8;     ///< That isolation is, or may be, of the next transaction alone.
inline constexpr Effects kTracking = 1U << 9;     ///< May change what the server says of the session.
inline constexpr Effects kNumbers = 1U << 10;     ///< Later writes may get the numbers of another server.
inline constexpr Effects kLogged = 1U << 11;      ///< From now on the session's writes are in the binary log.
inline constexpr Effects kUnlogged = 1U << 12;    ///< From now on they may not be.
inline constexpr Effects kTwoPhases = 1U << 13;   ///< A step of them, after which the end is in others' hands.
inline constexpr Effects kNames = 1U << 14;       ///< Changes which temporary tables there are, or what names mean.
inline constexpr Effects kSeveral = 1U << 15;     ///< Statements: the others say nothing of their order.
inline constexpr Effects kCalls = 1U << 16;       ///< A function that may not be built in, and so may write.
inline constexpr Effects kLocks = 1U << 17;  ///< What it reads: no snapshot, but for views, triggers and functions.

inline constexpr Effects kDefines = kWrites | kCommits | kEnds;  ///< Something, and commits what is open.

/// How many bytes the longest text has that is read. What a longer one does is not known.
inline constexpr std::size_t kLongestText = std::size_t{1} << 16U;

/// What a text may do, all its statements together.
Effects EffectsOf(std::string_view sql);
/// After what is quoted, or a comment, that begins there; 0 where none does. What is not closed goes to the end.
std::size_t QuotedTo(std::string_view sql, std::size_t at);
/// The words of the specification, sorted.
std::vector<std::string_view> NamesOf(Effects effects);

}  // namespace antipode::mysql
