// What a shim and its instrumented clients share.
#pragma once

#include <string>
#include <utility>

#include "antipode/mongodb.h"
#include "mongodb/link.h"
#include "mongodb/members.h"
#include "mongodb/position.h"

namespace antipode::mongodb {

struct Shim::Inside {
  Inside(const Target& target, LogHistory& terms, std::string promises)
      : history(terms), database(std::move(promises)), members(target) {}

  LogHistory& history;
  std::string database;  ///< Of the records of promises.
  Members members;
};

}  // namespace antipode::mongodb
