// What a shim and its instrumented clients share.
#pragma once

#include <string>
#include <utility>

#include "antipode/floor.h"
#include "antipode/mysql.h"
#include "mysql/connection.h"
#include "mysql/functions.h"
#include "mysql/promises.h"
#include "mysql/reach.h"
#include "mysql/servers.h"
#include "mysql/views.h"

namespace antipode::mysql {

struct Shim::Inside {
  Inside(Address server, const Options& options)
      : address(std::move(server)),
        promises(PromisesIn(address.database)),
        reach(options.one_server),
        readonly_functions(Declared(options.readonly_functions)) {}

  /// Counts a write that has no position, says why, and marks the current scope.
  static void Unsampled(const std::string& datastore, const std::string& cause);

  Address address;
  std::string promises;  ///< The table of their records.
  Runs runs;
  Silent silent;
  Reach reach;
  Functions readonly_functions;
  Listing views;
};

/// What a check on one connection shows of writes and promises. Throws as the servers do.
Observation ShownBy(Session& session, Shim::Inside& inside, const std::set<WriteId>& writes,
                    const std::set<Promise>& promises, double timeout_s);
/// What it shows where the server does not say where it stands.
Observation Undecidable(const Floor& floor, const std::string& cause);

}  // namespace antipode::mysql
