// What commands do, by their names and words: no question to the server decides it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace antipode::redis {

/// What a command means for a lineage.
enum class Does {
  kRead,
  kAwaitingRead,  ///< Waits for what comes: made twice, it would miss what came the first time.
  kWrite,
  kUnknown,  ///< May write and read what it likes: a script, a module's command.
  kNeither,
  kQueues,  ///< Begins or ends what is queued on the server.
};

/// How many words decide.
inline constexpr std::size_t kDecidingWords = 4;

/// The word of the specification.
std::string_view NameOf(Does does);
/// What a command does, by its first words.
Does DoesOf(const std::vector<std::string>& words);
/// A word in capitals.
std::string Capitals(std::string_view word);

inline bool Reads(Does does) { return does == Does::kRead || does == Does::kAwaitingRead; }
inline bool MayWrite(Does does) { return does == Does::kWrite || does == Does::kUnknown; }
/// Whether it can be sent again without a second effect.
inline bool Repeatable(Does does) { return does == Does::kRead || does == Does::kNeither; }

}  // namespace antipode::redis
