// A transaction over libmongoc: commands in, replies out.
#pragma once

#include <mongoc/mongoc.h>

#include <functional>
#include <string>

#include "mongodb/bson.h"

namespace antipode::mongodb {

/// What is asked in a transaction that is open.
class Transaction {
 public:
  explicit Transaction(mongoc_client_session_t* session) : session_(session) {}
  /// Throws Error, after which the transaction can only be ended.
  Doc Ask(const std::string& database, const Doc& command);
  /// The server's last refusal; empty for none.
  [[nodiscard]] const Doc& refusal() const { return refusal_; }

 private:
  mongoc_client_session_t* session_;
  Doc refusal_;
};

/// Does `work` in a transaction and commits it, again where the server says that it may succeed then, for two minutes
/// at most. Returns the time of the commit. Throws what `work` throws: nothing is left of it; or NoAnswer.
std::uint64_t Committed(mongoc_client_t* client, const mongoc_write_concern_t* concern,
                        const std::function<void(Transaction&)>& work);

}  // namespace antipode::mongodb
