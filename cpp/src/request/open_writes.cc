#include "request/open_writes.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/dry_run.h"
#include "runtime/forks.h"
#include "runtime/observers.h"

namespace antipode {
namespace {

struct State {
  struct Open {
    std::weak_ptr<Scope> scope;
    OpenWrite write;
    bool left = false;  ///< Whether something was sent from its request while it was open.
  };
  std::mutex lock;
  std::map<const void*, Open> open;  ///< By whose transaction it is.
  std::atomic<std::size_t> size{0};  ///< How many: most processes ask for nothing else.
};

/// Never destroyed: threads may write while the process ends.
State& TheState() {
  static auto* state = [] {
    auto* made = new State;
    HoldWhileForking(ForkRank::kOpenWrites, made->lock);
    return made;
  }();
  return *state;
}

}  // namespace

void RecordUncommitted(const std::string& datastore, const void* who, bool wrote) {
  State& state = TheState();
  if (!wrote && state.size == 0) return;
  const auto scope = wrote ? CurrentScope() : nullptr;
  const std::lock_guard guard(state.lock);
  if (!wrote) {
    state.open.erase(who);
  } else if (scope) {
    State::Open& open = state.open[who];
    if (open.scope.lock() != scope) {
      open = {scope, {who, datastore, DryRunNow() ? CurrentCallStack() : CallStack{}}, false};
    }
  }
  state.size = state.open.size();
}

std::vector<OpenWrite> OpenIn(const Scope& scope) {
  State& state = TheState();
  if (state.size == 0 || scope.stopped()) return {};
  std::vector<OpenWrite> found;
  const std::lock_guard guard(state.lock);
  for (const auto& [who, open] : state.open) {
    if (open.scope.lock().get() == &scope) found.push_back(open.write);
  }
  return found;
}

std::set<std::string> Uncommitted() {
  std::set<std::string> datastores;
  if (const auto scope = CurrentScope()) {
    for (OpenWrite& each : OpenIn(*scope)) datastores.insert(std::move(each.datastore));
  }
  return datastores;
}

void TellOfUnseen(const std::string& what, const Scope& scope, const OpenWrite& open) {
  Count("read_before_commit", open.datastore);
  if (const auto observer = DryRunNow()) observer->BeforeCommit(scope, what, open.datastore, open.wrote);
  WarnOnce("read_before_commit", open.datastore, what,
           "a " + what + " of '" + open.datastore +
               "' cannot see what the same request wrote in a transaction that is not committed yet: commit it before, "
               "or read within that transaction");
}

bool TellOfUnsent(const Scope& scope) {
  State& state = TheState();
  if (state.size == 0 || scope.stopped()) return false;
  std::set<std::string> unsent;
  {
    const std::lock_guard guard(state.lock);
    for (auto& [who, open] : state.open) {
      if (open.left || open.scope.lock().get() != &scope) continue;
      open.left = true;
      Count("sent_before_commit", open.write.datastore);
      unsent.insert(open.write.datastore);
    }
  }
  for (const std::string& datastore : unsent) {
    WarnOnce("sent_before_commit", datastore, "",
             "a message, a call or an answer does not depend on what the same request wrote to '" + datastore +
                 "': its transaction is not committed yet, so the write has no position. Send it after the commit");
  }
  return !unsent.empty();
}

}  // namespace antipode
