// Clients that are declared to read from a primary, while their server says that it is a replica.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "antipode/shim.h"

namespace antipode::dry_run {

/// Reads of such a client are no findings: what they read from was not declared. Each server is asked in the
/// background, on a connection of the library's own, once for each client whose read has something to miss.
/// Thread-safe.
class DeclaredRoles {
 public:
  /// Whether the server of a client was asked, or is.
  [[nodiscard]] bool Known(const Store& client) const;
  /// Calls `report`, from another thread, if the server of a client is a replica.
  void Ask(Store& client, std::function<void()> report);
  /// Waits until all that were asked have answered, but no longer than so many seconds.
  void Settle(double timeout_s);

 private:
  class Question;
  struct Asking {
    pid_t process;  ///< A child process has no thread that asks.
    std::shared_ptr<const Wake> answered;
  };

  mutable std::mutex lock_;
  std::set<std::weak_ptr<const Store>, std::owner_less<>> asked_;
  std::vector<Asking> asking_;
};

}  // namespace antipode::dry_run
