// Holds reads of an application's client back until the server that answers them shows what they must see.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "antipode/floor.h"
#include "antipode/mongodb.h"
#include "mongodb/attempts.h"
#include "mongodb/inside.h"
#include "mongodb/proof.h"

namespace antipode::mongodb {

/// What happened in one session of the application, which one thread at a time uses.
struct SessionState {
  bool wrote = true;  ///< Its transaction: so it is taken where its beginning was not seen.
  Proof shown;        ///< By its snapshot.
};

/// The server is asked on a connection of the library's own, while the read has its own already: a server that rolls
/// back closes that one first, and a read on another one is held back anew. Thread-safe.
class Guard {
 public:
  explicit Guard(Shim& shim) : shim_(shim) {}

  /// Waits until a command may be sent; `session` is null where it is in no transaction and of no snapshot. Throws
  /// UnmetError, StaleSnapshot, ConfigurationError where its server has no positions, or Error where it does not say.
  void Pass(const Command& command, Attempts& attempts, SessionState* session);
  /// A command with this level of read concern was answered.
  void Answered(const std::string& level);

 private:
  void Check(Floor& floor, bool shown, const std::function<bool(const Floor&)>& shows);
  void Hold(const Command& command, Floor& floor);
  Observation Look(Pool& server, const Floor& floor, bool majority);
  bool ReadsMajority(const Command& command, Pool& server, Floor& floor);
  bool ByDefault(Pool& server);

  Shim& shim_;
  std::mutex lock_;
  std::optional<double> asked_s_;  ///< When the servers said what their default is.
  bool majority_by_default_ = false;
  bool cursors_majority_ = false;  ///< Some read had such a concern: the batches of its cursor do not say so.
};

}  // namespace antipode::mongodb
