#include "mysql/endpoint.h"

#include <algorithm>

#include "antipode/observer.h"
#include "mysql/promises.h"

namespace antipode::mysql {

MySqlEndpoint::MySqlEndpoint(const std::string& datastore, Shim::Inside& inside, double timeout_s)
    : address_(inside.address), promises_(inside.promises), silent_(inside.silent) {
  try {
    session_ = std::make_unique<Session>(address_, timeout_s, inside.runs);
  } catch (const Error& error) {
    Refuse(error);
  }
  inside.reach.Require(session_->facts, datastore);
  Warn(datastore, timeout_s);
}

/// Learns what replication leaves out here; MySQL says so to whoever may ask for its state.
void MySqlEndpoint::Warn(const std::string& datastore, double timeout_s) {
  std::vector<std::string> filters;
  try {
    for (const Row& row : AskedServers(*session_, address_, silent_, timeout_s).Replication()) {
      for (const std::string& each : FiltersIn(row)) {
        if (std::find(filters.begin(), filters.end(), each) == filters.end()) filters.push_back(each);
      }
    }
  } catch (const Error&) {
    filters = session_->facts.filters;
  }
  if (filters.empty()) return;
  caveat_ = "replication leaves out rows there, whose positions come all the same: " + Joined(filters);
  WarnOnce("mysql_filters", datastore, address_.name(),
           "the server where '" + datastore + "' is read shows positions of writes that it never gets: " + caveat_);
}

std::string MySqlEndpoint::Server() const {
  const std::string& server = session_->facts.server;
  return resets_ == 0 ? server : server + "#" + std::to_string(resets_);
}

Observation MySqlEndpoint::Observe(const std::set<WriteId>& writes, double timeout_s) {
  AskedServers servers(*session_, address_, silent_, timeout_s);
  const Looked looked = Look(servers, session_->facts.group, writes);
  if (before_ && !looked.state->Covers(*before_)) ++resets_;  // What was known does not count any more.
  before_ = looked.state;
  Observation shown;
  shown.server = Server();
  shown.caveat = caveat_;
  looked.Tell(shown);
  return shown;
}

bool MySqlEndpoint::IsReplica(double timeout_s) {
  AskedServers servers(*session_, address_, silent_, timeout_s);
  try {
    return !servers.Replication().empty();
  } catch (const Error&) {
    return !servers.State(nullptr)->writable();
  }
}

Observation MySqlEndpoint::Promised(const std::set<Promise>& promises, double timeout_s) {
  session_->connection.Within(timeout_s);
  Observation shown;
  shown.server = Server();
  shown.promises = RecordsOf(session_->connection, promises_, promises);
  return shown;
}

}  // namespace antipode::mysql
