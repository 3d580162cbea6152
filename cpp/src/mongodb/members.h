// Connections of the library's own to members of a set, each by itself: those of an application's client cannot be
// asked, which is in the middle of a command there.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "mongodb/link.h"

namespace antipode::mongodb {

/// Thread-safe.
class Members {
 public:
  /// `target` outlives this; its user asks.
  explicit Members(const Target& target) : target_(target) {}
  /// The member at an address, whatever it is now. It stays. Throws ConfigurationError where it is no address.
  Pool& At(const std::string& address);

 private:
  const Target& target_;
  std::mutex lock_;
  std::map<std::string, std::unique_ptr<Pool>> pools_;
};

}  // namespace antipode::mongodb
