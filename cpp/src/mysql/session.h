// A connection to a server of which is known what it is, and which says what it commits.
#pragma once

#include "mysql/connection.h"
#include "mysql/facts.h"

namespace antipode::mysql {

struct Session {
  /// Connects and finds out, in that time. `runs` learns what the server has executed. Throws as `Connection`, or
  /// NotGtids.
  Session(const Address& address, double timeout_s, Runs& runs);
  /// The same on a connection of the application's, whose other settings stay as they are.
  Session(MYSQL* client, double timeout_s, Runs& runs);
  /// Asks for GTIDs with replies, in addition to what the application asks for.
  void Track();

  Connection connection;
  Facts facts;
};

}  // namespace antipode::mysql
