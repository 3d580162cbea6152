// What a scope holds, and what the rooms above keep with it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <typeindex>

#include "antipode/scope.h"
#include "antipode/settings.h"
#include "request/untrusted_text.h"
#include "runtime/allowance.h"

namespace antipode {

/// What a room above keeps with a request until it is stopped. Never changed.
class Attachment {
 public:
  virtual ~Attachment() = default;
  /// This and a later one, which a branch or a later call attaches.
  [[nodiscard]] virtual std::shared_ptr<const Attachment> Joined(const Attachment& later) const = 0;
  /// This for a branch that fulfils the promises of these ids itself; null where it gets none.
  [[nodiscard]] virtual std::shared_ptr<const Attachment> Branched(const std::set<std::string>& own) const = 0;
};

/// What runs for a request, all its branches together. Thread-safe.
struct Running {
  std::atomic<std::uint64_t> branches{0};
  std::mutex lock;
  std::multiset<std::string> streams;     ///< Services whose calls have answered something, and have not ended.
  std::multiset<std::string> unread;      ///< Datastores of which results are still to be read.
  std::atomic<std::size_t> in_doubt = 0;  ///< Of both, how many: most requests have none.
};

struct Scope::Inside {
  mutable std::mutex lock;
  Lineage lineage;
  Lineage came;               ///< What the headers of the request said.
  bool asked = false;         ///< Whether whoever sent the request wants an answer.
  bool answered = false;      ///< What is written now is in nobody's lineage but its own.
  std::set<std::string> own;  ///< Promises that this branch fulfils itself: they never enter.
  std::map<std::type_index, std::shared_ptr<const Attachment>> attached;  ///< One of each kind.
  std::shared_ptr<Allowance> allowance;
  std::shared_ptr<Scope> joined;  ///< Where a branch that is over hands on what its threads still add.
  std::shared_ptr<Running> running = std::make_shared<Running>();
  mutable LeavingCache leaving;  ///< The text that was sent last; under the lock.
  std::atomic<bool> open{true};
  std::atomic<bool> stopped{false};

  /// Takes a lineage in; under the lock.
  void TakeIn(const Lineage& added);
  /// Takes a write in, here and where the branch joined; whether the request was answered before.
  bool Enter(const WriteId& write);
  void Attach(const std::shared_ptr<const Attachment>& added);
  /// What is attached of a kind; null where nothing is.
  template <typename Kind>
  [[nodiscard]] std::shared_ptr<const Kind> Attached() const {
    const std::lock_guard guard(lock);
    const auto found = attached.find(typeid(Kind));
    return found == attached.end() ? nullptr : std::static_pointer_cast<const Kind>(found->second);
  }
  /// The time that reads of the request may wait by themselves, all of them together; under the lock.
  const std::shared_ptr<Allowance>& Allowed();
  /// The lineage, with a mark for each datastore of which results are still to be read.
  [[nodiscard]] Lineage Held() const;
  /// The same, with one for each stream that has not ended: what a barrier is about.
  [[nodiscard]] Lineage Doubted() const;
  /// `held` of this scope, with these marks.
  [[nodiscard]] Lineage WithUnread(Lineage held) const;
  /// The lineage, with the number of branches that run.
  [[nodiscard]] Lineage Branching() const;
  /// The same as it may leave this process.
  [[nodiscard]] std::string Leaving() const;
  /// The same, with the mark of a snapshot.
  [[nodiscard]] std::string Snapshot() const;
};

/// A lineage that enters a scope, without notes: a dry run keeps them apart, and others pass them on.
Lineage Noted(const Scope& scope, const Lineage& lineage);

/// What is left of a lineage that a scope holds.
Lineage Kept(const Lineage& lineage);
Lineage WithBranches(const Lineage& lineage, std::uint64_t branches);

/// Counts something that found no scope; throws ConfigurationError under that policy.
void Unscoped(const char* what, std::string_view datastore, std::optional<Policy> policy);

}  // namespace antipode
