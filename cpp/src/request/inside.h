// What a scope holds, and what the rooms above keep with it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "antipode/scope.h"
#include "antipode/settings.h"

namespace antipode {

/// What a room above keeps with a request until it is stopped. Never changed.
class Attachment {
 public:
  virtual ~Attachment() = default;
  /// This and a later one, which a branch or a later call attaches.
  [[nodiscard]] virtual std::shared_ptr<const Attachment> Joined(const Attachment& later) const = 0;
  /// This for a branch that fulfils the promises of these ids itself.
  [[nodiscard]] virtual std::shared_ptr<const Attachment> Branched(const std::set<std::string>& own) const = 0;
};

struct Scope::Inside {
  mutable std::mutex lock;
  Lineage lineage;
  Lineage came;               ///< What the headers of the request said.
  bool asked = false;         ///< Whether whoever sent the request wants an answer.
  bool answered = false;      ///< What is written now is in nobody's lineage but its own.
  std::set<std::string> own;  ///< Promises that this branch fulfils itself: they never enter.
  std::shared_ptr<const Attachment> attached;
  std::shared_ptr<Scope> joined;  ///< Where a branch that is over hands on what its threads still add.
  std::shared_ptr<std::atomic<std::uint64_t>> branches = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::atomic<bool> open{true};
  std::atomic<bool> stopped{false};

  /// Takes a lineage in; under the lock.
  void TakeIn(const Lineage& added);
  void Attach(const std::shared_ptr<const Attachment>& added);
  [[nodiscard]] std::shared_ptr<const Attachment> Attached() const;
  /// The lineage, with the number of branches that run.
  [[nodiscard]] Lineage Leaving() const;
};

/// What is left of a lineage that a scope holds.
Lineage Kept(const Lineage& lineage);
Lineage WithBranches(const Lineage& lineage, std::uint64_t branches);

/// Counts something that found no scope; throws ConfigurationError under that policy.
void Unscoped(const char* what, std::string_view datastore, std::optional<Policy> policy);

}  // namespace antipode
