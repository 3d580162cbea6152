// The messages that go out over one channel: their names and headers, and what their confirms mean. No I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/propagation.h"
#include "rabbitmq/confirms.h"
#include "rabbitmq/publisher.h"

namespace antipode::rabbitmq {

/// The headers of ours that a message gets, in addition to the application's or in their place.
Headers Outgoing(const Headers& given, const std::optional<WriteId>& write, const std::string& datastore);

class OutgoingMessages {
 public:
  explicit OutgoingMessages(std::string datastore) : datastore_(std::move(datastore)) {}

  /// The next message of the current scope, in a lane of its publisher. Names those of the scope that come before it.
  Publication Named(std::string lane);
  /// The next one, which no receipts hear.
  Publication Unheard();
  /// Sends it without its name.
  void Unname(Publication& publication);
  /// It is on its way: its scope is in doubt from now on.
  void Sent(Publication publication);
  /// One came back, before its confirm.
  void Returned(const Headers& headers);
  /// They are confirmed, or refused. Why the first of them is not where it should be; empty for none.
  std::string Settle(std::uint64_t tag, bool multiple, bool taken);
  /// The broker may have what is not confirmed, or refused it for certain.
  void DoubtAll();
  void RefuseAll();
  [[nodiscard]] std::size_t size() const { return confirms_.size(); }

 private:
  void Doubt(const Publication& publication);

  std::string datastore_;
  Publications publications_;
  Confirms confirms_;
};

}  // namespace antipode::rabbitmq
