#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "antipode/errors.h"
#include "antipode/export.h"
#include "antipode/shim.h"

namespace antipode {

/// What a read is counted for once it is answered: it may be stale. A client that knows when its reads are answered
/// makes one for each, and calls `Answered`. A read that fails instead was served to nobody, and is not counted.
/// Thread-safe.
class ANTIPODE_EXPORT StaleRead {
 public:
  /// Notes that a read of `datastore` may go although `error` says that it is stale.
  void Serve(const std::string& datastore, const AntipodeError& error);
  /// Counts it: the reply has begun, and is no error. Idempotent.
  void Answered();

 private:
  std::mutex lock_;
  std::optional<std::pair<std::string, AntipodeError>> served_;
};

/// What the next read of one datastore must see, on whatever connection it is made: what barriers left to it, and where
/// reads wait automatically, what its request depends on there. For shims whose reads are held back. Thread-safe.
///
///     const auto floor = antipode::Floor::Current(*this);
///     if (floor) floor->Hold([&](double timeout_s) { return Look(connection, *floor, timeout_s); }, this);
///     return Read(connection);
class ANTIPODE_EXPORT Floor {
 public:
  /// Polls once, for all that is demanded, on the connection that will read, for at most so many seconds.
  using Look = std::function<Observation(double timeout_s)>;

  /// What the next read by a client of `store` must see; null where nothing: the read is sent as it is. Asked once for
  /// each read, in the thread whose scope it belongs to, just before it is sent; a dry run takes it for over once
  /// that thread goes on with its request. `reads` is false for more of a read
  /// that was asked for already, and for what may turn out to be none. `who` is the connection or session that reads,
  /// as RecordUncommitted has it. `stale` counts the read once it is answered; without it, it is counted where it is
  /// let go, though its server may refuse it. Throws UnmetError where something is known without a check not to be
  /// visible, and stale reads are to throw.
  static std::shared_ptr<Floor> Current(Store& store, bool reads = true, const void* who = nullptr,
                                        std::shared_ptr<StaleRead> stale = nullptr);

  virtual ~Floor();
  [[nodiscard]] virtual const std::string& datastore() const = 0;
  [[nodiscard]] virtual const std::set<Dependency>& demanded() const = 0;
  [[nodiscard]] std::set<WriteId> writes() const;
  /// None where no shim of the datastore checks promises.
  [[nodiscard]] std::set<Promise> promises() const;

  /// Whether this incarnation has shown all of it, in the last so many seconds. Then a pinned connection to it need not
  /// ask again.
  [[nodiscard]] virtual bool Proved(const std::string& server, double within_s) const = 0;
  /// How long a check may last: what time there is left, but enough for one honest try.
  [[nodiscard]] virtual double PollS() const = 0;
  /// How long the server may block during a check: what time there is left, but no longer than is given; 0 once it is
  /// up.
  [[nodiscard]] virtual double BlockS(double longest_s) const = 0;
  /// Whether the read may be answered although it was not shown all of it.
  [[nodiscard]] virtual bool Served() const = 0;
  /// Whether it counts as stale: served, or of an incomplete lineage.
  [[nodiscard]] virtual bool Counted() const = 0;

  /// Whether another floor demands all of it, too.
  [[nodiscard]] virtual bool Within(const Floor* other) const = 0;

  /// The read is answered: it is known, without a check, to be shown all of it that a check can show.
  virtual void Pass() = 0;
  /// Whether a read made at or after this check may be answered. Throws UnmetError where waiting cannot help.
  virtual bool Accepts(const Observation& observation) = 0;
  /// Holds a read back until a check shows it all; then read on that connection. Where the server does not itself hold
  /// the check back, `watched` is the client's store, whose watcher checks for all held reads. Throws UnmetError, or
  /// what `look` throws.
  virtual void Hold(const Look& look, Store* watched = nullptr) = 0;
  /// Ends a read whose own connection showed nothing until the time was up. Throws BarrierTimeout; where it does not,
  /// the client's own error follows, since there is nothing that could be served.
  virtual void Expire(const Unreachable& cause) = 0;
  /// Ends a read from a snapshot that is too old. Throws `error`, unless the read is answered all the same. `shows` is
  /// whether the snapshot is known to show all that another floor demands.
  virtual void FailSnapshot(const StaleSnapshot& error, const std::function<bool(const Floor&)>& shows) = 0;
};

}  // namespace antipode
