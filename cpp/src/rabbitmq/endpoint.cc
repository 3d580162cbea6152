#include "rabbitmq/endpoint.h"

namespace antipode::rabbitmq {

std::string ReceiptsEndpoint::Server() const { return tap_ ? tap_->Queue() : "consumers"; }

/// With the reasons that this endpoint knows: deaf, or listening elsewhere.
Ledger::Said ReceiptsEndpoint::Explained(Ledger::Said said) const {
  if (said.status == Status::kVisible) return said;
  if (const std::string deaf = tap_ ? tap_->Deaf() : ""; !deaf.empty()) return {Status::kUnreachable, deaf};
  if (said.status != Status::kNotYet) return said;
  said.cause =
      tap_ ? "the exchange '" + tap_->exchange() + "' has not routed it here: what went to another one is not heard"
           : "no consumer of this process has received it";
  return said;
}

Observation ReceiptsEndpoint::Observe(const std::set<WriteId>& writes, double) {
  changes_ = ledger_->Changes();
  Observation seen;
  seen.server = Server();
  for (const WriteId& each : writes) {
    Ledger::Said said = Explained(ledger_->Judge(each));
    seen.statuses[each] = said.status;
    if (!said.cause.empty()) seen.causes[each] = std::move(said.cause);
  }
  return seen;
}

Observation ReceiptsEndpoint::Promised(const std::set<Promise>& promises, double) {
  changes_ = ledger_->Changes();
  Observation seen;
  seen.server = Server();
  for (const Promise& each : promises) {
    Ledger::Said said = Explained(ledger_->Judge(each));
    seen.promises[each] = said.status;
    if (!said.cause.empty()) seen.promise_causes[each] = std::move(said.cause);
  }
  return seen;
}

}  // namespace antipode::rabbitmq
