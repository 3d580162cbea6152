// What travels for a dry run with the lineage of a request: its id and its guards (specification, dry run).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "antipode/outcomes.h"
#include "antipode/scope.h"

namespace antipode::dry_run {

/// The notes of one request, which all its branches share. Thread-safe.
class Notes {
 public:
  /// Those of a scope's request.
  static std::shared_ptr<Notes> Of(const Scope& scope);

  /// The request's id; drawn now, where none came with it.
  std::string Request();
  /// Takes over the notes among some items; those that are malformed say nothing.
  void Take(const std::set<std::string>& items);
  /// Notes that a barrier in a region waits, or would have waited, for something.
  void Guard(const std::string& region, const Dependency& guarded);
  [[nodiscard]] bool Covers(const std::string& region, const Dependency& wanted) const;
  /// What travels; of the datastores that may be named alone, where these are listed.
  std::set<std::string> Items(const std::optional<std::set<std::string>>& egress);

 private:
  /// What one guard covers: region, datastore, log; versions without an order, and promises, are alone in theirs.
  using Log = std::tuple<std::string, std::string, std::string, std::string>;
  static Log LogOf(const std::string& region, const Dependency& found);
  /// Under the lock.
  void Add(const std::string& region, const Dependency& guarded);
  const std::string& Drawn();

  mutable std::mutex lock_;
  std::string request_;
  std::map<Log, Dependency> guards_;
};

}  // namespace antipode::dry_run
