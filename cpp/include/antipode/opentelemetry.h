/// Lineages through opentelemetry-cpp: the scope of a request stands in its Context, and travels with its baggage.
///
/// Call `Instrument` once as the process starts, after the global propagator and, if there is one, a storage of
/// contexts of your own have been set:
///
///     GlobalTextMapPropagator::SetGlobalPropagator(...);          // one that carries baggage
///     antipode::opentelemetry::Instrument();
///
/// From then on the two notions of "current" are one. A context that is attached makes its scope the current one of
/// Antipode, on any thread; under an `antipode::ScopeGuard`, `RuntimeContext::GetCurrent` holds the guard's scope.
///
///     auto before = RuntimeContext::GetCurrent();
///     auto token = RuntimeContext::Attach(propagator->Extract(carrier, before));      // a request begins
///     ...
///     std::thread([context = RuntimeContext::GetCurrent()] {
///       auto handed = RuntimeContext::Attach(context);                                // the same request
///       propagator->Inject(outgoing, context);                                        // the lineage of this moment
///     });
///     antipode::CurrentScope()->End();
///
/// The baggage has a member `antipode`, a snapshot of the lineage that says so. The propagator puts the lineage of the
/// moment in its place. Whoever removes the member or clears the baggage stops sending the lineage.
///
/// As OpenTelemetry has it, a token is destroyed on the thread on which its context was attached.
///
/// Headers only, so that it fits the types of `nostd` that your program has chosen.
#pragma once

#include <opentelemetry/baggage/baggage.h>
#include <opentelemetry/baggage/baggage_context.h>
#include <opentelemetry/context/propagation/global_propagator.h>
#include <opentelemetry/context/propagation/text_map_propagator.h>
#include <opentelemetry/context/runtime_context.h>

#include <atomic>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "antipode/errors.h"
#include "antipode/members.h"
#include "antipode/propagation.h"

namespace antipode::opentelemetry {

using ::opentelemetry::baggage::Baggage;
using ::opentelemetry::context::Context;
using ::opentelemetry::context::RuntimeContext;
using ::opentelemetry::context::RuntimeContextStorage;
using ::opentelemetry::context::Token;
using ::opentelemetry::context::propagation::GlobalTextMapPropagator;
using ::opentelemetry::context::propagation::TextMapCarrier;
using ::opentelemetry::context::propagation::TextMapPropagator;
namespace nostd = ::opentelemetry::nostd;

namespace internal {

inline constexpr char kScopeKey[] = "antipode-scope";
inline constexpr char kMember[] = "antipode";
inline constexpr char kBaggageHeader[] = "baggage";
inline constexpr char kSentHeader[] = "antipode-sent";

/// The values of a context are of few types: a scope goes in as a baggage that nobody reads.
struct Holder final : Baggage {
  explicit Holder(std::shared_ptr<Scope> held) : scope(std::move(held)) {}
  std::shared_ptr<Scope> scope;
};

inline std::string Text(nostd::string_view view) { return {view.data(), view.size()}; }

inline bool HasMember(Baggage& baggage) {
  std::string ignored;
  return baggage.GetValue(kMember, ignored);
}

}  // namespace internal

/// The scope that a context holds; null without one.
inline std::shared_ptr<Scope> ScopeOf(const Context& context) noexcept {
  const auto value = context.GetValue(internal::kScopeKey);
  const auto* held = nostd::get_if<nostd::shared_ptr<Baggage>>(&value);
  return held == nullptr ? nullptr : static_cast<internal::Holder*>(held->get())->scope;
}

/// `context` with this scope, or with none, and with a baggage whose lineage is to be sent.
inline Context WithScope(const Context& context, const std::shared_ptr<Scope>& scope) {
  const auto before = ::opentelemetry::baggage::GetBaggage(context);
  nostd::shared_ptr<Baggage> baggage = before;
  if (scope) {
    baggage = before->Set(internal::kMember, scope->snapshot());
  } else if (internal::HasMember(*before)) {
    baggage = before->Delete(internal::kMember);
  }
  std::shared_ptr<Baggage> holder = std::make_shared<internal::Holder>(scope);
  Context held = Context(context).SetValue(internal::kScopeKey, nostd::shared_ptr<Baggage>(std::move(holder)));
  return ::opentelemetry::baggage::SetBaggage(held, baggage);
}

/// Reads and writes `Headers`. Of a name that comes several times it gives all values, as a list with commas.
class HeadersCarrier final : public TextMapCarrier {
 public:
  explicit HeadersCarrier(Headers& headers) : headers_(headers) {}

  nostd::string_view Get(nostd::string_view key) const noexcept override {
    const std::string* only = nullptr;
    std::string joined;
    for (const auto& [name, value] : headers_) {
      if (!Same(name, key)) continue;
      joined += only == nullptr ? value : ',' + value;
      only = &value;
    }
    if (only == nullptr) return "";
    if (joined.size() == only->size()) return *only;
    joined_.push_back(std::move(joined));
    return joined_.back();
  }

  void Set(nostd::string_view key, nostd::string_view value) noexcept override {
    Headers kept;
    for (auto& header : headers_) {
      if (!Same(header.first, key)) kept.push_back(std::move(header));
    }
    kept.emplace_back(internal::Text(key), internal::Text(value));
    headers_.swap(kept);
  }

 private:
  static bool Same(std::string_view a, nostd::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (lower(a[i]) != lower(b[i])) return false;
    }
    return true;
  }

  Headers& headers_;
  mutable std::deque<std::string> joined_;  ///< Stays where it is: propagators read several headers at once.
};

namespace internal {

/// A carrier as others read it: without what is ours.
class WithoutOurs final : public TextMapCarrier {
 public:
  WithoutOurs(const TextMapCarrier& carrier, std::string baggage) : carrier_(carrier), baggage_(std::move(baggage)) {}

  nostd::string_view Get(nostd::string_view key) const noexcept override {
    return key == kBaggageHeader ? nostd::string_view(baggage_) : carrier_.Get(key);
  }
  void Set(nostd::string_view, nostd::string_view) noexcept override {}
  bool Keys(nostd::function_ref<bool(nostd::string_view)> callback) const noexcept override {
    return carrier_.Keys(callback);
  }

 private:
  const TextMapCarrier& carrier_;
  std::string baggage_;
};

/// A carrier as others write it: in what they set as baggage, the lineage stands in place of its snapshot.
class WithLineage final : public TextMapCarrier {
 public:
  WithLineage(TextMapCarrier& carrier, std::string text) : carrier_(carrier), text_(std::move(text)) {}

  nostd::string_view Get(nostd::string_view key) const noexcept override { return carrier_.Get(key); }
  void Set(nostd::string_view key, nostd::string_view value) noexcept override {
    if (key == kBaggageHeader) {
      carrier_.Set(key, WithMember({value.data(), value.size()}, text_));
    } else {
      carrier_.Set(key, value);
    }
  }
  bool Keys(nostd::function_ref<bool(nostd::string_view)> callback) const noexcept override {
    return carrier_.Keys(callback);
  }

 private:
  TextMapCarrier& carrier_;
  std::string text_;
};

}  // namespace internal

/// Carries lineages with what another propagator carries. Let it wrap a composite one, rather than be part of it.
class Propagator final : public TextMapPropagator {
 public:
  /// Throws ConfigurationError where `wrapped` carries no baggage.
  explicit Propagator(nostd::shared_ptr<TextMapPropagator> wrapped) : wrapped_(std::move(wrapped)) {
    bool baggage = false;
    wrapped_->Fields([&baggage](nostd::string_view field) {
      baggage = baggage || field == internal::kBaggageHeader;
      return true;
    });
    if (!baggage) ThrowConfigurationError("the propagator carries no baggage: add a BaggagePropagator to it");
    (void)CurrentSettings();  // What is wrong in the environment is an error here, and not amid a request.
  }

  /// What came joins the scope of `context` while that is open; else a scope begins with it.
  Context Extract(const TextMapCarrier& carrier, Context& context) noexcept override {
    if (Disabled()) return wrapped_->Extract(carrier, context);
    Headers headers;
    std::string baggage = internal::Text(carrier.Get(internal::kBaggageHeader));
    const internal::WithoutOurs others(carrier, WithoutMember(baggage).value_or(baggage));
    if (!baggage.empty()) headers.emplace_back(internal::kBaggageHeader, std::move(baggage));
    std::string sent = internal::Text(carrier.Get(internal::kSentHeader));
    if (!sent.empty()) headers.emplace_back(internal::kSentHeader, std::move(sent));
    const auto scope = antipode::Extract(headers, ScopeOf(context));
    return WithScope(wrapped_->Extract(others, context), scope);
  }

  void Inject(TextMapCarrier& carrier, const Context& context) noexcept override {
    const auto scope = Disabled() ? nullptr : ScopeOf(context);
    if (!scope || !internal::HasMember(*::opentelemetry::baggage::GetBaggage(context))) {
      wrapped_->Inject(carrier, context);
      return;
    }
    // Headers that are handed on may have a lineage already.
    const std::string given = internal::Text(carrier.Get(internal::kBaggageHeader));
    internal::WithLineage rendering(carrier, Together(*scope, scope->text(), Members({given})));
    wrapped_->Inject(rendering, context);
  }

  bool Fields(nostd::function_ref<bool(nostd::string_view)> callback) const noexcept override {
    return wrapped_->Fields(callback);
  }

  [[nodiscard]] const nostd::shared_ptr<TextMapPropagator>& wrapped() const noexcept { return wrapped_; }

 private:
  nostd::shared_ptr<TextMapPropagator> wrapped_;
};

namespace internal {

/// Keeps contexts where `wrapped` does, and lets the scope of the one that is attached be the current one.
class Storage final : public RuntimeContextStorage {
 public:
  /// OpenTelemetry gives away only a pointer to const, of an object that is not.
  explicit Storage(nostd::shared_ptr<const RuntimeContextStorage> wrapped)
      : held_(std::move(wrapped)), wrapped_(const_cast<RuntimeContextStorage*>(held_.get())) {}

  void Follow(bool follows) noexcept { follows_ = follows; }

  Context GetCurrent() noexcept override {
    const Context context = wrapped_->GetCurrent();
    if (!follows_) return context;
    const auto scope = CurrentScope();
    return ScopeOf(context) == scope ? context : WithScope(context, scope);
  }

  nostd::unique_ptr<Token> Attach(const Context& context) noexcept override {
    if (follows_) Attached().emplace_back(context, std::make_unique<ScopeGuard>(ScopeOf(context)));
    return wrapped_->Attach(context);
  }

  bool Detach(Token& token) noexcept override {
    auto& attached = Attached();
    for (auto each = attached.rbegin(); each != attached.rend(); ++each) {
      if (!(token == each->first)) continue;
      attached.erase(std::next(each).base());
      break;
    }
    return wrapped_->Detach(token);
  }

 private:
  static std::vector<std::pair<Context, std::unique_ptr<ScopeGuard>>>& Attached() {
    thread_local std::vector<std::pair<Context, std::unique_ptr<ScopeGuard>>> attached;
    return attached;
  }

  nostd::shared_ptr<const RuntimeContextStorage> held_;
  RuntimeContextStorage* wrapped_;
  std::atomic<bool> follows_{true};
};

/// What `Instrument` put in place.
struct Instrumented {
  std::mutex lock;
  std::shared_ptr<Propagator> propagator;
  std::shared_ptr<Storage> storage;

  static Instrumented& The() {
    static auto* instrumented = new Instrumented;
    return *instrumented;
  }
};

}  // namespace internal

/// Wraps the global propagator and the storage of contexts, once. Throws ConfigurationError where the propagator
/// carries no baggage. Does nothing where the library is disabled.
inline void Instrument() {
  if (Disabled()) return;
  auto& instrumented = internal::Instrumented::The();
  const std::lock_guard guard(instrumented.lock);
  const auto propagator = GlobalTextMapPropagator::GetGlobalPropagator();
  if (propagator.get() != instrumented.propagator.get()) {
    instrumented.propagator = std::make_shared<Propagator>(propagator);
    GlobalTextMapPropagator::SetGlobalPropagator(std::shared_ptr<TextMapPropagator>(instrumented.propagator));
  }
  const auto storage = RuntimeContext::GetConstRuntimeContextStorage();
  if (storage.get() != instrumented.storage.get()) {
    instrumented.storage = std::make_shared<internal::Storage>(storage);
    RuntimeContext::SetRuntimeContextStorage(std::shared_ptr<RuntimeContextStorage>(instrumented.storage));
  }
  instrumented.storage->Follow(true);
}

/// Removes what `Instrument` did. Contexts that are attached meanwhile can be detached all the same.
inline void Uninstrument() {
  auto& instrumented = internal::Instrumented::The();
  const std::lock_guard guard(instrumented.lock);
  if (instrumented.storage) instrumented.storage->Follow(false);
  if (!instrumented.propagator) return;
  if (GlobalTextMapPropagator::GetGlobalPropagator().get() == instrumented.propagator.get()) {
    GlobalTextMapPropagator::SetGlobalPropagator(instrumented.propagator->wrapped());
  }
  instrumented.propagator.reset();
}

}  // namespace antipode::opentelemetry
