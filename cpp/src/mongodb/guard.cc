#include "mongodb/guard.h"

#include "antipode/clock.h"
#include "antipode/errors.h"
#include "antipode/observer.h"
#include "mongodb/promises.h"

namespace antipode::mongodb {
namespace {

/// How long what the servers say of their default concern is believed: an administrator may change it.
constexpr double kFreshS = 60;

bool IsMajority(const std::string& level) { return level == "majority" || level == "snapshot"; }

}  // namespace

void Guard::Pass(const Command& command, Attempts& attempts, SessionState* session) {
  const bool starts = command.Starts();
  if (!starts && !Reads(command.name, command.does)) return;
  const bool asks = command.does == Effect::kReads && !command.InTransaction() && command.name != "getMore";
  const bool first = asks && attempts.First();
  const auto floor = Floor::Current(shim_, first, nullptr, attempts.stale());
  if (first) attempts.Asks(floor);
  if (!floor) return;
  if (command.InTransaction() && !starts) {
    const auto shows = [session](const Floor& other) { return session != nullptr && session->shown.Covers(other); };
    Check(*floor, shows(*floor), shows);
    return attempts.Answer(*floor);
  }
  const auto snapshot = StampAt(command.body, "readConcern.atClusterTime");
  if (snapshot && session != nullptr) {
    const auto shows = [session, snapshot](const Floor& other) {
      return Proof(other).Until(*snapshot) && session->shown.Keeps(other);
    };
    Check(*floor, shows(*floor), shows);
  }
  Hold(command, *floor);
  attempts.Answer(*floor);
  // The snapshot is taken after it.
  if (session != nullptr && !snapshot && !floor->Served()) session->shown = Proof(*floor);
}

void Guard::Answered(const std::string& level) {
  if (!IsMajority(level)) return;
  const std::lock_guard guard(lock_);
  cursors_majority_ = true;
}

void Guard::Check(Floor& floor, bool shown, const std::function<bool(const Floor&)>& shows) {
  if (shown) return;
  floor.FailSnapshot(
      StaleSnapshot("a session of '" + shim_.datastore() +
                    "' reads from a snapshot that is older than what the barrier waited for: end its transaction, or "
                    "start a new session, before the read"),
      shows);
}

void Guard::Hold(const Command& command, Floor& floor) {
  try {
    Pool& server = shim_.inside().members.At(command.server);
    const bool majority = ReadsMajority(command, server, floor);
    floor.Hold([&](double) { return Look(server, floor, majority); }, &shim_);
  } catch (const Unreachable& error) {
    throw Error(error.what());
  }
}

Observation Guard::Look(Pool& server, const Floor& floor, bool majority) {
  Shim::Inside& inside = shim_.inside();
  Pool::Lease link(server);
  try {
    Observation shown = Shown(link->Hello(true), floor.writes(), majority, inside.history, *link);
    const std::set<Promise> promises = floor.promises();
    if (!promises.empty()) {
      Doc search = SearchRecords(promises);
      if (majority) search.Add("readConcern", Only("level", "majority"));
      shown.promises = RecordsIn(link->Ask(inside.database, search, true).bson(), promises);
    }
    return shown;
  } catch (const Error& error) {
    if (Passes(error)) throw Unreachable(error.what());
    throw;
  }
}

/// Whether a command reads what a majority has.
bool Guard::ReadsMajority(const Command& command, Pool& server, Floor& floor) {
  if (command.name == "getMore") {
    const std::lock_guard guard(lock_);
    return cursors_majority_;
  }
  // One that says something else alone, such as afterClusterTime, is not completed.
  if (At(command.body, "readConcern")) return IsMajority(TextAt(command.body, "readConcern.level").value_or(""));
  try {
    return ByDefault(server);
  } catch (const Unreachable& error) {
    floor.Expire(error);
    throw;
  }
}

bool Guard::ByDefault(Pool& server) {
  {
    const std::lock_guard guard(lock_);
    if (asked_s_ && SystemClock().Now() - *asked_s_ < kFreshS) return majority_by_default_;
  }
  bool majority = false;
  try {
    const Doc question = Doc().Add("getDefaultRWConcern", 1).Add("inMemory", true);
    const Doc reply = Pool::Lease(server)->Ask("admin", question, true);
    majority = IsMajority(TextAt(reply.bson(), "defaultReadConcern.level").value_or(""));
  } catch (const Error& error) {
    if (Passes(error)) throw Unreachable(error.what());
    WarnOnce("mongodb_default_read_concern", shim_.datastore(), "",
             "the servers of '" + shim_.datastore() +
                 "' do not show their default read concern, which is taken for 'local': state one in the URI, or grant "
                 "getDefaultRWConcern (" +
                 error.what() + ")");
  }
  const std::lock_guard guard(lock_);
  asked_s_ = SystemClock().Now();
  majority_by_default_ = majority;
  return majority;
}

}  // namespace antipode::mongodb
