// The publications of one channel that its broker has not confirmed. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "antipode/scope.h"
#include "antipode/write_id.h"

namespace antipode::rabbitmq {

/// One of them, and where it enters.
struct Publication {
  std::optional<WriteId> write;  ///< None for one that enters nothing.
  std::string lane;              ///< Of its publisher.
  std::shared_ptr<Scope> scope;
  /// While nobody knows whether the broker has it: what leaves the scope meanwhile is in doubt.
  std::unique_ptr<OpenBranch> unknown = {};
  bool returned = false;
};

class Confirms {
 public:
  /// The next one is sent.
  void Sent(Publication publication) { pending_.emplace(++last_, std::move(publication)); }
  /// Another one of a scope is about to be sent. The broker takes them in order: it names those before it, which enter
  /// now as if they were confirmed, and stay where one is refused later (ADR 0153).
  void Enter(const std::shared_ptr<Scope>& scope);
  /// A message came back, before its confirm; none where it named no write.
  void Returned(const std::optional<WriteId>& write);
  /// Takes those out that are settled: one, or all up to it.
  std::vector<Publication> Settled(std::uint64_t tag, bool multiple);
  /// Takes out all that are left.
  std::vector<Publication> Rest();
  [[nodiscard]] std::size_t size() const { return pending_.size(); }

 private:
  std::map<std::uint64_t, Publication> pending_;
  std::uint64_t last_ = 0;
};

}  // namespace antipode::rabbitmq
