// What requests wrote in transactions that are still open: nobody else can see it yet.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "antipode/scope.h"
#include "runtime/call_stack.h"

namespace antipode {

/// A transaction that has written and is not committed yet.
struct OpenWrite {
  const void* who = nullptr;  ///< Whose it is: a connection or session.
  std::string datastore;
  CallStack wrote;  ///< Who wrote first; empty outside of a dry run.
};

/// Those in which a scope has written.
std::vector<OpenWrite> OpenIn(const Scope& scope);
/// Counts and, once for each datastore, says what cannot see the writes of a transaction: a `read` or `barrier`.
void TellOfUnseen(const std::string& what, const Scope& scope, const OpenWrite& open);
/// Counts each open transaction of a scope once, and says for each datastore once, when something leaves without what
/// it wrote: a message, a call or an answer. The position of its writes does not exist yet. Whether it said so now.
bool TellOfUnsent(const Scope& scope);

}  // namespace antipode
