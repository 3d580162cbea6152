// Commands of an application that go over its connection at once, and what their replies say was done. No I/O.
#pragma once

#include <hiredis/hiredis.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "redis/commands.h"
#include "redis/position.h"

namespace antipode::redis {

/// A command, as it goes over the wire.
struct Sending {
  /// Of what hiredis formatted.
  explicit Sending(std::string formatted);

  std::string bytes;
  std::vector<std::string> words;  ///< The first ones, which decide.
  std::string name;                ///< In capitals.
  Does does;
};
using Batch = std::vector<Sending>;

/// A transaction that was begun on a connection.
struct Transaction {
  std::vector<Does> queued;
  bool migrates = false;              ///< A key goes to another server.
  std::optional<ServerState> before;  ///< Where the server stood.
  std::set<Dependency> shown;         ///< What reads in it need not wait for.
};

/// How many of the first commands may go at once: the questions with them must not get into a transaction, and the
/// messages of a subscription are no replies.
std::size_t FirstOf(const Batch& batch, bool queuing);

/// What is asked together with a batch that is not to be cut.
struct Questions {
  bool before = false;
  bool behind = false;
};
Questions QuestionsBeside(const Batch& batch, const std::optional<Transaction>& transaction);

/// What was done.
struct Outcome {
  std::optional<Does> done;  ///< A write, or what may be one; none: neither.
  bool in_doubt = false;     ///< Something that may write was sent, and not answered.
  bool migrated = false;     ///< What was done there is in the log of another server.
  bool astray = false;       ///< The connection was made anew meanwhile, and what was to be queued was done.
};
/// Takes in the replies that came, which may be fewer than the commands; and what becomes of the transaction.
Outcome Settled(const Batch& batch, const std::vector<const redisReply*>& replies,
                std::optional<Transaction>& transaction);

}  // namespace antipode::redis
