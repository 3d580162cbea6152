#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "antipode/clock.h"
#include "antipode/export.h"
#include "antipode/outcomes.h"
#include "antipode/settings.h"
#include "antipode/write_id.h"

namespace antipode {

class Fencer;
class Watcher;

/// A check failed in a way that a later check may not: refused, reset, timed out, loading.
class ANTIPODE_EXPORT Unreachable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Unreachable() override;
};

/// The key of what `Following` demands; no log has such a name.
inline constexpr std::string_view kPrimaryKey = "~primary";
/// The demand that a server follows a primary at the time of the check, or is that server. A primary's position stands
/// for writes that are missing only as long as it is the primary: one that was replaced may still answer. So a fence of
/// a store in which that can happen has this entry with the positions. It is in no lineage.
[[nodiscard]] ANTIPODE_EXPORT WriteId Following(const std::string& datastore, const std::string& primary);

/// What one server showed of some writes and promises at one check. What is left out is `not_yet`.
struct ANTIPODE_EXPORT Observation {
  std::string server;  ///< The incarnation: changes whenever the server's history may have; never an address.
  std::map<WriteId, Status> statuses;
  std::optional<double> eta_s;            ///< Seconds until the last of them may be visible, if the store can say it.
  std::map<WriteId, std::string> causes;  ///< For people.
  std::map<Promise, Status> promises;     ///< `visible` where the record says fulfilled, `abandoned`, or `not_yet`.
  std::map<Promise, std::string> promise_causes;
  std::string caveat;  ///< What is to be said of everything that is visible there.

  /// The outcome of a dependency, and its cause.
  [[nodiscard]] std::pair<Status, std::string> Of(const Dependency& dependency) const;
};

/// Ends pauses early. Thread-safe.
class ANTIPODE_EXPORT Wake {
 public:
  void Set();
  void Clear();
  [[nodiscard]] bool IsSet() const;
  /// Waits until it is set, at most so many seconds.
  void Wait(double timeout_s) const;

 private:
  mutable std::mutex lock_;
  mutable std::condition_variable changed_;
  bool set_ = false;
};

/// A connection of the library's own to the one server where the caller will read. Used by one thread at a time, but
/// for `Pinned` and `Interrupt`.
class ANTIPODE_EXPORT Endpoint {
 public:
  virtual ~Endpoint();
  /// Whether the server's history cannot have changed under the live connection.
  [[nodiscard]] virtual bool Pinned() const { return false; }
  /// Whether the server ends `Pause` once what the last check missed may be visible; for promises, too.
  [[nodiscard]] virtual bool Blocks() const { return false; }
  [[nodiscard]] virtual bool PushesPromises() const { return false; }
  /// Whether a check ends within the time that it is given. Where not, no barrier checks in its caller's thread.
  [[nodiscard]] virtual bool EndsInTime() const { return true; }
  /// Polls once, without waiting for the writes, which are not empty. Throws Unreachable where that is worth
  /// repeating; any other exception says that another check cannot help.
  virtual Observation Observe(const std::set<WriteId>& writes, double timeout_s) = 0;
  /// Asks once for the records of promises; the incarnation and the promises alone are answered.
  virtual Observation Promised(const std::set<Promise>& promises, double timeout_s);
  /// Whether its server says that it is a replica; false where it says nothing of that. Throws as `Observe`.
  virtual bool IsReplica(double timeout_s);
  /// Waits so many seconds, until woken, or until the server pushes something, which may set `wake` as well.
  virtual void Pause(double timeout_s, Wake& wake);
  /// Nobody waits any more: ends what the server pushes until the next pause.
  virtual void Rest();
  /// Makes a check that another thread is in fail soon; may do nothing.
  virtual void Interrupt();
};

enum class ReadsFrom { kPrimary, kReplica };

/// For `Store::Forked`: makes an object new, and leaves alone what the old one held. A thread of the parent process may
/// have been changing it, and its connections are the parent's: to close one may end the session that the parent uses.
template <typename Held, typename... Arguments>
void Renew(Held& held, Arguments&&... arguments) {
  ::new (static_cast<void*>(std::addressof(held))) Held(std::forward<Arguments>(arguments)...);
}

/// One datastore as barriers see it: what a shim derives from. Held by `std::shared_ptr`; `Close` it before its class
/// is destroyed.
class ANTIPODE_EXPORT Store : public std::enable_shared_from_this<Store> {
 public:
  /// Throws ConfigurationError where the name is empty.
  explicit Store(std::string datastore, ReadsFrom reads_from = ReadsFrom::kPrimary,
                 std::optional<ReadBarriers> barriers = std::nullopt);
  virtual ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  [[nodiscard]] const std::string& datastore() const noexcept { return datastore_; }
  [[nodiscard]] ReadsFrom reads_from() const noexcept { return reads_from_; }
  /// Whether reads of its clients wait automatically; none: as configured.
  [[nodiscard]] std::optional<ReadBarriers> barriers() const noexcept { return barriers_; }

  [[nodiscard]] virtual bool Waitable() const { return true; }   ///< Whether its writes can be waited for at all.
  [[nodiscard]] virtual bool CanPoll() const { return true; }    ///< Whether it can open endpoints.
  [[nodiscard]] virtual bool Floors() const { return false; }    ///< Whether its client holds reads back.
  [[nodiscard]] virtual bool Fences() const { return false; }    ///< Whether its primary can be asked for a position.
  [[nodiscard]] virtual bool Promises() const { return false; }  ///< Whether checks and held reads know promises.
  [[nodiscard]] virtual bool Abandons() const { return false; }  ///< Whether it can record an abandonment.

  virtual std::unique_ptr<Endpoint> OpenEndpoint(double timeout_s) = 0;
  /// The primary's position of now, as covering entries; where a primary that was replaced may still answer, with
  /// `Following` among them.
  virtual std::set<WriteId> Fence(double timeout_s);
  /// The first position of a log, where only this store can have one of that name.
  [[nodiscard]] virtual std::optional<WriteId> LogStart(const std::string& key) const;
  /// Records that a promise is abandoned; false where it was fulfilled before.
  virtual bool AbandonPromise(const Promise& promise, double timeout_s);

  /// Unregisters it and releases the library's connections. Idempotent.
  virtual void Close();

  /// The library calls it in a process that forked from the one of this store, on the only thread that is there. What
  /// is derived calls this, and renews what has a thread, a lock or a connection: it is the parent's. See `Renew`.
  virtual void Forked();

  /// For the library.
  [[nodiscard]] virtual Clock& clock() const;
  virtual std::shared_ptr<Fencer> fencer();
  std::shared_ptr<Watcher> watcher();

 private:
  std::string datastore_;
  ReadsFrom reads_from_;
  std::optional<ReadBarriers> barriers_;
  std::mutex lock_;
  std::shared_ptr<Watcher> watcher_;
  std::shared_ptr<Fencer> fencer_;
};

/// How long a store must keep the record of a promise from now on, in seconds: as long as anybody may wait for it.
ANTIPODE_EXPORT std::uint64_t RecordSeconds(const Promise& promise);

/// Makes a store known to barriers. Registering it again changes nothing.
ANTIPODE_EXPORT void Register(const std::shared_ptr<Store>& store);
/// Forgets it, and ends who waits at it.
ANTIPODE_EXPORT void Unregister(Store& store);

}  // namespace antipode
