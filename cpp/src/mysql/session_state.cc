#include "mysql/session_state.h"

#include <algorithm>
#include <set>

namespace antipode::mysql {
namespace {

/// For how long what a check showed counts: a server that is reset in place notifies nobody.
constexpr double kFreshS = 2;
constexpr std::size_t kMostLogs = 64;
constexpr std::size_t kMostPromises = 256;

/// Errors of a statement that was not executed: it does not parse, or names no table.
bool IsUnread(unsigned number) { return number == 1064 || number == 1146; }
/// Or names a column that there is not, or one that a read-only transaction may not have: unless a trigger, a function
/// or a view had read by then.
bool IsUnresolved(unsigned number) { return number == 1054 || number == 1792; }
/// And of one that its user may not run, that names what there is not, that a server refuses which only reads, or that
/// lost its locks.
bool IsUnwritten(unsigned number) {
  static const auto& kNumbers =
      *new std::set<unsigned>{1044, 1045, 1046, 1049, 1052, 1054, 1093, 1099, 1100, 1109, 1110, 1136,
                              1142, 1143, 1205, 1213, 1227, 1290, 1305, 1318, 1370, 1785, 1792, 1836};
  return IsUnread(number) || kNumbers.count(number) != 0;
}
/// Errors of a definition that it meets after its commit: a table is there, or is none.
bool IsBehindCommit(unsigned number) { return number == 1050 || number == 1051; }

bool TakesSnapshot(Effects effects) { return (effects & (kReads | kSnapshot | kMaySnapshot)) != 0; }

}  // namespace

bool SessionState::Seen::Covers(const Floor& floor) const {
  for (const WriteId& write : floor.writes()) {
    const auto* version = std::get_if<std::uint64_t>(&write.version);
    const auto last = logs.find(write.key);
    if (version == nullptr || last == logs.end() || last->second < *version) return false;
  }
  const std::set<Promise> demanded = floor.promises();
  return std::all_of(demanded.begin(), demanded.end(),
                     [&](const Promise& each) { return promises.count(each.id) != 0; });
}

void SessionState::Seen::Add(const std::set<WriteId>& writes, const std::set<Promise>& fulfilled) {
  for (const WriteId& write : writes) {
    if (const auto* version = std::get_if<std::uint64_t>(&write.version)) {
      auto& last = logs[write.key];
      last = std::max(last, *version);
    }
  }
  for (const Promise& each : fulfilled) promises.insert(each.id);
  if (logs.size() > kMostLogs) logs.clear();
  if (promises.size() > kMostPromises) promises.clear();
}

SessionState::SessionState(Flags flags)
    : flags_(flags),
      snapshot_(flags.in_transaction ? Snapshot::kTaken : Snapshot::kNone),
      wrote_(flags.in_transaction ? Wrote::kYes : Wrote::kNo) {}

void SessionState::Reaches(const std::string& server) {
  if (server == server_) return;
  server_ = server;
  known_ = {};
  shown_ = {};
}

void SessionState::Heard(Flags flags) {
  flags_ = flags;
  unsure_ = false;
  if (!flags.in_transaction) Closed();
}

Verdict SessionState::Judge(const std::shared_ptr<Floor>& floor, Effects effects, double now_s) {
  ForgetOld(now_s);
  const bool renews = (effects & kEnds) != 0 && (effects & kSeveral) == 0;
  if (snapshot_ != Snapshot::kNone && !renews) {
    if (Shows(*floor)) return Verdict::kPass;
    if (snapshot_ == Snapshot::kTaken) return Verdict::kOldSnapshot;
    return snapshot_ == Snapshot::kLocked ? Verdict::kLocked : Verdict::kTriggered;
  }
  if (known_.Covers(*floor)) {
    Learn(floor, {}, {}, now_s);
    return Verdict::kPass;
  }
  if (!floor->Proved(server_, kFreshS)) return Verdict::kHold;
  Learn(floor, floor->writes(), floor->promises(), now_s);
  return Verdict::kPass;
}

void SessionState::Passed(const std::shared_ptr<Floor>& floor, const Observation& seen, bool renews, double now_s) {
  ForgetOld(now_s);
  std::set<WriteId> writes;
  for (const WriteId& each : floor->writes()) {
    if (seen.Of(each).first == Status::kVisible) writes.insert(each);
  }
  std::set<Promise> promises;
  for (const Promise& each : floor->promises()) {
    if (seen.Of(each).first == Status::kVisible) promises.insert(each);
  }
  Learn(floor, writes, promises, now_s);
  if (!renews && !looked_) return;
  shown_ = known_;
  looked_ = false;
}

void SessionState::Learn(const std::shared_ptr<Floor>& floor, const std::set<WriteId>& writes,
                         const std::set<Promise>& promises, double now_s) {
  if (!known_.passed) known_s_ = now_s;  // What is remembered is as old as the first of it.
  known_.passed = floor;
  known_.Add(writes, promises);
}

void SessionState::ForgetOld(double now_s) {
  if (now_s - known_s_ > kFreshS) known_ = {};
}

void SessionState::SnapshotTaken() {
  snapshot_ = Snapshot::kTaken;
  looked_ = true;
  shown_ = {};
}

bool SessionState::ReadsCommitted(std::string_view level) const {
  if (!flags_.in_transaction) return true;
  return !isolation_unsure_ && !isolated_once_ && (level == "READ-COMMITTED" || level == "READ-UNCOMMITTED");
}

void SessionState::Starts(Effects effects, double now_s) {
  flight_ = (effects & kCalls) != 0 ? effects | kWrites : effects;
  outlasts_ = outlasts_ || May(kCalls);
  looked_ = false;
  before_ = snapshot_;
  alone_ = Autonomous() && !unsure_;
  // A deadlock ends a transaction, other errors do not: after one nobody knows.
  commits_ = May(kCommits) || Autonomous() || (unsure_ && flags_.autocommit);
  committed_ = false;
  Take(effects, now_s);
  if (!May(kIsolation)) return;
  isolated_once_ = isolated_once_ || May(kNextOnly);
  isolation_unsure_ = isolation_unsure_ || !Autonomous();
}

void SessionState::Take(Effects effects, double now_s) {
  const bool ends = (effects & kEnds) != 0;
  const bool writes = (effects & kWrites) != 0 && !ends;
  if (!TakesSnapshot(effects) && !writes) return;
  const Snapshot taken = !TakesSnapshot(effects)   ? Snapshot::kPerhaps
                         : (effects & kLocks) != 0 ? Snapshot::kLocked
                                                   : Snapshot::kTaken;
  if (snapshot_ != Snapshot::kNone && !ends) {
    snapshot_ = std::max(snapshot_, taken);
    return;
  }
  ForgetOld(now_s);
  shown_ = known_;
  snapshot_ = taken;
}

bool SessionState::Doubtful() const {
  const bool wrote = wrote_ != Wrote::kNo;
  if (May(kTwoPhases) && wrote) return true;
  return commits_ && (May(kWrites) || (wrote && May(kCommits)));
}

bool SessionState::Lost() {
  const bool doubtful = Doubtful();
  flight_ = 0;
  unsure_ = true;
  return doubtful;
}

Due SessionState::Ended(End end, std::optional<std::uint64_t> changed, unsigned number, bool warned, Flags flags) {
  flags_ = flags;
  // What is in tables without transactions was not rolled back.
  outlasts_ = outlasts_ || (warned && May(kEnds) && wrote_ != Wrote::kNo);
  const Wrote wrote = Changed(end, changed, number);
  const Due due = DueOf(end, wrote, end == End::kDone && changed);
  if (end == End::kDone) {
    Settle(wrote);
  } else {
    SettleFailed(wrote, number);
  }
  flight_ = 0;
  return due;
}

Wrote SessionState::Changed(End end, std::optional<std::uint64_t> changed, unsigned number) const {
  if (!May(kWrites)) return Wrote::kNo;
  if (end == End::kDone) {
    // What a function wrote is in no count of rows.
    if (May(kCalls)) return changed.value_or(0) != 0 ? Wrote::kYes : Wrote::kPerhaps;
    return changed != std::uint64_t{0} ? Wrote::kYes : Wrote::kNo;
  }
  // What came before the error may be committed, or in a table without transactions.
  if (end == End::kFailed || May(kCommits | kSeveral)) return Wrote::kYes;
  return IsUnwritten(number) ? Wrote::kNo : Wrote::kPerhaps;
}

Due SessionState::DueOf(End end, Wrote wrote, bool told) const {
  const bool writes = May(kWrites);
  // Of several statements nobody knows whether the GTID is that of the write, or of its preparation.
  const bool named = committed_ && writes && !May(kSeveral);
  const bool done = end == End::kDone || May(kSeveral);
  if (done && May(kTwoPhases) && !named && (wrote_ != Wrote::kNo || writes)) return Due::kUncovered;
  const bool ends = May(kCommits);
  const bool undone = outlasts_ && May(kEnds) && !ends;
  const Wrote all = undone ? Wrote::kPerhaps : ends ? std::max(wrote, wrote_) : wrote;
  // The position of one of several statements says nothing of what a later one wrote that returns rows, or fails.
  const Effects anything = kReads | kWrites | kCommits;
  const bool hides = end != End::kDone || May(kCalls) || (flight_ & anything) == anything;
  const bool known = committed_ && !(May(kSeveral) && hides);
  if (known || all == Wrote::kNo) return Due::kNothing;
  if (!undone && (!commits_ || (end == End::kDone && flags_.in_transaction && !ends))) {
    // In a table without transactions, and of a sequence, it is there before the end: rows and errors do not show it.
    return told ? Due::kNothing : Due::kPerhaps;
  }
  if (unlogged_ && !committed_) return Due::kUncovered;
  return all == Wrote::kYes && !committed_ ? Due::kSample : Due::kPerhaps;
}

void SessionState::Settle(Wrote wrote) {
  const bool single = !May(kSeveral);
  const bool begins = May(kBegins);
  // After what ends one there is none open, but for a new one.
  if (May(kEnds) && single && (begins || !flags_.in_transaction)) {
    const bool unsure = isolation_unsure_ && begins;  // What BEGIN ends hands its isolation on.
    Closed();
    isolation_unsure_ = unsure;
    snapshot_ = TakesSnapshot(flight_) ? Snapshot::kTaken : Snapshot::kNone;
  }
  wrote_ = std::max(wrote_, wrote);
  if (!flags_.in_transaction) Closed();
  if (May(kLogged | kUnlogged)) unlogged_ = May(kUnlogged);
  unsure_ = false;
}

void SessionState::SettleFailed(Wrote wrote, unsigned number) {
  const bool single = !May(kCommits | kSeveral);
  const bool defines = May(kWrites) && May(kEnds);
  if (alone_ && single) {
    snapshot_ = Snapshot::kNone;
  } else if (single && IsUnread(number)) {
    snapshot_ = before_;
  } else if (single && IsUnresolved(number)) {
    snapshot_ = std::max(before_, std::min(snapshot_, Snapshot::kLocked));
  } else if (defines && IsBehindCommit(number) && !May(kSeveral)) {
    flags_.in_transaction = false;
    Closed();
  } else if (May(kEnds)) {
    shown_ = {};  // Whether it began again nobody knows.
  }
  wrote_ = std::max(wrote_, wrote);
  unsure_ = unsure_ || !Autonomous() || May(kCommits);
}

void SessionState::Closed() {
  wrote_ = Wrote::kNo;
  outlasts_ = false;
  isolation_unsure_ = false;
  snapshot_ = Snapshot::kNone;
}

}  // namespace antipode::mysql
