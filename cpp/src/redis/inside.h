// What a shim and its instrumented clients share.
#pragma once

#include <string>

#include "antipode/redis.h"
#include "redis/position.h"
#include "redis/tokens.h"

namespace antipode::redis {

struct Shim::Inside {
  Inside(const std::string& datastore, const Options& options)
      : prefix(options.prefix), timeout_s(options.timeout.count()), entries(datastore, options.keep_log_history) {}

  /// What a child process begins anew.
  void Forked() {
    Renew(history);
    entries.Forked();
  }

  std::string prefix;
  double timeout_s;
  LogHistory history;
  Entries entries;
};

}  // namespace antipode::redis
