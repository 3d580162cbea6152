// Whether the connections of one shim are known to lead to one server each.
#pragma once

#include <mutex>
#include <string>

#include "mysql/facts.h"

namespace antipode::mysql {

/// A proxy that speaks the protocol itself may send what the library asks to another server than the read. Thread-safe.
class Reach {
 public:
  /// `stated`: the application states that all statements of a connection reach one server.
  explicit Reach(bool stated) : stated_(stated) {}

  /// Whether connections are known to lead to one server. One that shows a proxy shows it for all of them: by chance
  /// the numbers of another one may be equal.
  bool Knows(const Facts& facts);
  /// Throws ConfigurationError, which says what to state, where they are not; or where nobody can wait for positions.
  void Require(const Facts& facts, const std::string& datastore);

 private:
  const bool stated_;
  std::mutex lock_;
  std::string proxied_;
};

}  // namespace antipode::mysql
