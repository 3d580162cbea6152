#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/export.h"
#include "antipode/lineage.h"

namespace antipode {

/// The one mutable, locked holder of a request's lineage. Thread-safe; held by `std::shared_ptr`.
///
/// It is open until its block ends; what its branches write afterwards still enters. `Stop` discards it, for all
/// branches (specification, scope and propagation).
class ANTIPODE_EXPORT Scope {
 public:
  /// Starts from a lineage that this process made, or from nothing.
  explicit Scope(const Lineage& start = Lineage());
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// Starts from a text that came from elsewhere. Throws LineageDecodeError.
  static std::shared_ptr<Scope> Received(std::string_view text);

  [[nodiscard]] Lineage lineage() const;
  /// The lineage as it may leave this process in baggage: bounded, filtered, with the number of branches that run.
  [[nodiscard]] std::string text() const;
  /// The same with a mark: for places that whoever copies them cannot ask again.
  [[nodiscard]] std::string snapshot() const;
  [[nodiscard]] bool open() const noexcept;
  [[nodiscard]] bool stopped() const noexcept;

  /// Enters a write that the store has acknowledged. One without a mint hour gets the present one.
  Lineage Append(const WriteId& write);
  Lineage Merge(const Lineage& lineage);
  Lineage Remove(const WriteId& write);
  /// Notes that something of `subject` is missing, and why.
  void MarkIncomplete(std::string_view subject, std::string_view reason);
  /// The request is over; branches that still run keep the lineage.
  void End() noexcept;
  /// Discards the lineage, for all branches; nothing enters any more.
  void Stop() noexcept;

  /// For the library.
  struct Inside;
  [[nodiscard]] Inside& inside() const noexcept { return *inside_; }

 private:
  std::unique_ptr<Inside> inside_;
};

/// A branch of a request while it runs without a promise: what is sent meanwhile says so.
class ANTIPODE_EXPORT OpenBranch {
 public:
  explicit OpenBranch(std::shared_ptr<Scope> scope);
  ~OpenBranch();
  OpenBranch(const OpenBranch&) = delete;
  OpenBranch& operator=(const OpenBranch&) = delete;

  /// It is a call of `service`, which has answered something and has not ended. Nobody knows what it wrote: until the
  /// branch is over, barriers of the request find (`service`, `in_doubt`), which no lineage keeps. Not thread-safe, as
  /// all of a branch.
  void Streams(std::string_view service);
  /// Results of a call to `datastore` are still to be read, and may say what it wrote: until the branch is over, all
  /// that is read of the lineage, and leaves, has (`datastore`, `in_doubt`).
  void Unread(std::string_view datastore);

 private:
  std::shared_ptr<Scope> scope_;
  std::optional<std::string> streaming_;
  std::optional<std::string> unread_;
};

/// The current scope of a thread at one moment, to be handed to another thread or to a callback. A value.
class ANTIPODE_EXPORT Captured {
 public:
  /// The current scope; null where there is none.
  [[nodiscard]] const std::shared_ptr<Scope>& scope() const noexcept { return scope_; }

 private:
  friend ANTIPODE_EXPORT Captured Capture();
  std::shared_ptr<Scope> scope_;
};

/// What `ScopeGuard` on another thread goes on in.
ANTIPODE_EXPORT Captured Capture();

/// Makes a scope the current one of this thread, as long as the guard lives.
///
///     antipode::ScopeGuard request;                      // a request begins, with a new scope
///     std::thread([captured = antipode::Capture()] {
///       antipode::ScopeGuard guard(captured);            // the same request, on another thread
///     }).join();
///
/// Neither copyable nor movable. It ends on the thread on which it began, before those that began earlier there. One
/// that ends otherwise marks its scope incomplete and is counted: code under it may have written to another scope. The
/// scope whose guard still lives stays current then, and no other becomes current again.
///
/// A coroutine holds no guard over a `co_await`: others run on its thread meanwhile, and it may go on on another one.
/// It keeps its scope, and begins a guard after each resumption:
///
///     const antipode::Captured request = antipode::Capture();
///     const auto posts = co_await Fetch();
///     { const antipode::ScopeGuard guard(request); Store(posts); }
class ANTIPODE_EXPORT ScopeGuard {
 public:
  /// A request begins; its scope ends with the guard.
  ScopeGuard();
  explicit ScopeGuard(const Lineage& start);
  /// A request goes on here; its scope ends where it began.
  explicit ScopeGuard(const Captured& captured);
  /// A scope is current here; it ends elsewhere.
  explicit ScopeGuard(std::shared_ptr<Scope> scope);
  ~ScopeGuard();
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

  [[nodiscard]] const std::shared_ptr<Scope>& scope() const noexcept { return scope_; }

 private:
  struct Frame;
  friend ANTIPODE_EXPORT std::shared_ptr<Scope> CurrentScope();
  ScopeGuard(std::shared_ptr<Scope> scope, bool begins);
  static std::vector<std::shared_ptr<Frame>>& Stack();
  void Leave();
  std::shared_ptr<Scope> scope_;
  std::shared_ptr<Frame> frame_;
  bool begins_;
};

/// The branch that fulfils a promise: a scope with all of the outer one but the promise, which joins that one at the
/// branch's end, on whatever thread that is. Without an outer scope there is none.
class ANTIPODE_EXPORT Branch {
 public:
  Branch(std::shared_ptr<Scope> outer, Promise promise);
  ~Branch();
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;

  [[nodiscard]] const Promise& promise() const noexcept { return promise_; }
  [[nodiscard]] const std::shared_ptr<Scope>& scope() const noexcept { return inner_; }

 private:
  Promise promise_;
  std::shared_ptr<Scope> outer_;
  std::shared_ptr<Scope> inner_;
};

/// Such a branch of the current scope, which is current on this thread as long as it lives.
class ANTIPODE_EXPORT Fulfilling {
 public:
  explicit Fulfilling(const Promise& promise);
  /// Throws LineageDecodeError where the text is no promise's token.
  explicit Fulfilling(std::string_view token);

  [[nodiscard]] const Promise& promise() const noexcept { return branch_.promise(); }

 private:
  Branch branch_;
  ScopeGuard guard_;
};

/// The token of a promise, which its branch gets; and back, or LineageDecodeError.
ANTIPODE_EXPORT std::string TokenOf(const Promise& promise);
ANTIPODE_EXPORT Promise PromiseOf(std::string_view token);

/// The scope of this thread; null without one.
ANTIPODE_EXPORT std::shared_ptr<Scope> CurrentScope();
/// Discards the current lineage, for all branches of the request; nothing without a scope.
ANTIPODE_EXPORT void Stop();
/// The lineage of the current scope; the empty one without.
ANTIPODE_EXPORT Lineage Current();
/// The datastores in which the current scope has written, in transactions that are open: no other connection sees
/// those writes, and no barrier waits for them. A router of reads sends those of such a datastore to its primary.
ANTIPODE_EXPORT std::set<std::string> Uncommitted();
/// Adds to, and takes from, the current scope; what it holds then. Without a scope adding is counted, or is
/// ConfigurationError where `on_unscoped` says so.
ANTIPODE_EXPORT Lineage Append(const WriteId& write);
ANTIPODE_EXPORT Lineage Remove(const WriteId& write);
/// Merges a lineage, or a text that came from elsewhere, into the current scope.
ANTIPODE_EXPORT Lineage Transfer(const Lineage& lineage);
ANTIPODE_EXPORT Lineage Transfer(std::string_view text);
/// The text of the current lineage, or of another, for a header, a message or a column: bounded and filtered.
ANTIPODE_EXPORT std::string Serialize();
ANTIPODE_EXPORT std::string Serialize(const Lineage& lineage);

/// For shims: enters committed writes into the current scope, after the store's reply.
ANTIPODE_EXPORT void RecordWrite(const WriteId& write);
/// For shims: notes that a transaction has written and is open, or is over; `who` is whose it is, a connection or a
/// session, as `Floor::Current` has it. Its writes have no positions yet, and no other connection sees them.
ANTIPODE_EXPORT void RecordUncommitted(const std::string& datastore, const void* who, bool wrote);
/// For shims: notes, for a dry run, that a message is handled which says nothing of this library's in its headers, in
/// the current scope or in none.
ANTIPODE_EXPORT void RecordUnlabelled(const std::string& datastore);
/// For shims, and for calls of your own: notes in the current scope that something is missing.
ANTIPODE_EXPORT void MarkIncomplete(std::string_view subject, std::string_view reason);

}  // namespace antipode
