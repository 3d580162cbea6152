// What is known of the session of one connection of an application's: its transaction, its snapshot, what is in flight.
// The server's flags decide; where they do not, a transaction may be open, its snapshot may be old, and a statement may
// have written. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "antipode/floor.h"
#include "mysql/statements.h"

namespace antipode::mysql {

/// What a server's reply says of a session.
struct Flags {
  bool autocommit = false;
  bool in_transaction = true;
};

/// What to do with a read that must wait.
enum class Verdict {
  kPass,
  kHold,
  kOldSnapshot,  ///< One is open that does not show what is demanded, unless reads see the last commits.
  kTriggered,    ///< The transaction wrote and read nothing: a trigger or a function may have taken one.
  kLocked,       ///< It locked all that it read: a view, too, may have taken one.
};

/// What the end of a call leaves to do.
enum class Due {
  kNothing,
  kSample,     ///< A position is missing.
  kPerhaps,    ///< One is where there was a write, which is asked, too.
  kUncovered,  ///< There will never be one.
};

/// How a call ended: it is done, the server answered with an error, or nobody knows although the connection lives.
enum class End { kDone, kRefused, kFailed };

/// Whether a call, or a transaction, wrote.
enum class Wrote { kNo, kPerhaps, kYes };

class SessionState {
 public:
  /// A session that may be in a transaction, of which nothing is known.
  explicit SessionState(Flags flags);

  /// Notes which server the connection reaches; what another one showed counts no more.
  void Reaches(const std::string& server);
  /// Takes in the server's flags after a question of the library's own.
  void Heard(Flags flags);

  /// Whether each statement commits by itself now.
  [[nodiscard]] bool Autonomous() const { return flags_.autocommit && !flags_.in_transaction; }
  [[nodiscard]] bool InTransaction() const { return flags_.in_transaction; }
  /// Whether the next statement may take the snapshot of a transaction.
  [[nodiscard]] bool Fresh() const { return snapshot_ == Snapshot::kNone && !Autonomous(); }
  /// Whether the isolation of a transaction may be another than the session's.
  [[nodiscard]] bool IsolatedOnce() const { return isolated_once_; }
  /// Whether the open transaction wrote.
  [[nodiscard]] bool Uncommitted() const { return wrote_ != Wrote::kNo && !Autonomous(); }

  /// Whether a statement that reads, or may take the snapshot, may be sent.
  Verdict Judge(const std::shared_ptr<Floor>& floor, Effects effects, double now_s);
  /// Notes that a read was shown all on this connection; `renews`: reads of the open transaction see it.
  void Passed(const std::shared_ptr<Floor>& floor, const Observation& seen, bool renews, double now_s);
  /// Whether the open snapshot is known to show all that is demanded.
  [[nodiscard]] bool Shows(const Floor& floor) const {
    return floor.Within(shown_.passed.get()) || shown_.Covers(floor);
  }
  /// A check of the library's own opened the snapshot of the application's transaction.
  void SnapshotTaken();
  /// Whether reads of the open transaction see what was committed last.
  [[nodiscard]] bool ReadsCommitted(std::string_view level) const;

  /// Notes that a call is about to be made.
  void Starts(Effects effects, double now_s);
  /// Notes that writes of this session were committed.
  void Committed() { committed_ = true; }
  /// Whether what is in flight leaves a write to others: its GTID is of no commit.
  [[nodiscard]] bool Preparing() const { return May(kTwoPhases) && !May(kWrites); }
  /// Whether what is in flight may commit a write, or leave it to others to commit.
  [[nodiscard]] bool Doubtful() const;
  /// Notes the end of a connection; returns whether that leaves a write in doubt.
  bool Lost();
  /// Notes how a call ended; `changed` rows, where that is reported, the `number` of the server's error, and whether it
  /// `warned`.
  Due Ended(End end, std::optional<std::uint64_t> changed, unsigned number, bool warned, Flags flags);

 private:
  enum class Snapshot { kNone, kPerhaps, kLocked, kTaken };

  /// Positions, and promises, that were seen, and what was demanded and met with them.
  struct Seen {
    std::map<std::string, std::uint64_t> logs;
    std::set<std::string> promises;
    std::shared_ptr<Floor> passed;

    [[nodiscard]] bool Covers(const Floor& floor) const;
    void Add(const std::set<WriteId>& writes, const std::set<Promise>& fulfilled);
  };

  void ForgetOld(double now_s);
  void Learn(const std::shared_ptr<Floor>& floor, const std::set<WriteId>& writes, const std::set<Promise>& promises,
             double now_s);
  void Take(Effects effects, double now_s);
  [[nodiscard]] Wrote Changed(End end, std::optional<std::uint64_t> changed, unsigned number) const;
  [[nodiscard]] Due DueOf(End end, Wrote wrote, bool told) const;
  void Settle(Wrote wrote);
  void SettleFailed(Wrote wrote, unsigned number);
  void Closed();
  [[nodiscard]] bool May(Effects effects) const { return (flight_ & effects) != 0; }

  std::string server_;
  Flags flags_;
  Snapshot snapshot_;
  Wrote wrote_;            ///< The open transaction.
  bool outlasts_ = false;  ///< What it wrote may outlast its rollback.
  bool unlogged_ = false;
  bool unsure_ = false;  ///< The flags may be old: an error carries none.
  bool isolation_unsure_ = false;
  bool isolated_once_ = false;
  Seen known_;  ///< On this connection, lately.
  double known_s_ = 0;
  Seen shown_;  ///< In the open snapshot.
  // Of the call in flight.
  Effects flight_ = 0;
  Snapshot before_ = Snapshot::kNone;
  bool looked_ = false;
  bool alone_ = false;
  bool commits_ = false;
  bool committed_ = false;
};

}  // namespace antipode::mysql
