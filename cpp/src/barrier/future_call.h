// A barrier whose result comes later: no thread waits for it.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>

#include "barrier/call.h"
#include "runtime/background.h"

namespace antipode {

/// Held by `std::shared_ptr`. It ends once, in a later step or as it begins, unless it was cancelled. Thread-safe.
class FutureCall final : public std::enable_shared_from_this<FutureCall> {
 public:
  /// What a barrier comes to, or what it throws.
  using Ending = std::variant<BarrierResult, std::exception_ptr>;

  /// `ended` throws nothing. Throws ConfigurationError, or std::invalid_argument.
  FutureCall(const BarrierOptions& options, Clock& clock, Purpose purpose, std::function<void(Ending)> ended);

  /// `later` is of the same clock.
  void Begin(Later& later);
  /// The error of a barrier that nobody could begin to wait for.
  [[noreturn]] void NotStarted(const std::string& cause) { call_.NotStarted(cause); }
  /// Waits no longer.
  void Cancel();

 private:
  void AskFences();
  /// Whether all primaries have answered.
  bool HasFences();
  void AwaitAll();
  /// Waits for a waiter, which `make` makes of what notifies it, at most so many seconds; then goes on.
  template <typename Make>
  void Await(Make make, double timeout_s, void (FutureCall::*then)());
  void Compared();
  void Fenced();
  void Conclude();

  /// Begins to wait for one thing; its number.
  std::uint64_t BeginStep(void (FutureCall::*then)());
  void EndAfter(std::uint64_t step, double timeout_s);
  void EndSoon(std::uint64_t step);
  /// Ends what is waited for at present, and goes on; nothing where it has ended before.
  void End(std::uint64_t step);
  template <typename Does>
  void Guarded(Does does);

  Call call_;
  Clock& clock_;
  Later* later_ = nullptr;
  std::function<void(Ending)> ended_;
  std::unique_ptr<Comparison> comparison_;

  std::mutex lock_;  ///< Of what is waited for.
  std::uint64_t step_ = 0;
  bool over_ = false;
  void (FutureCall::*then_)() = nullptr;
  std::optional<Later::Moment> deadline_;
  std::shared_ptr<Waiter> waiter_;
  Fences fences_;
};

}  // namespace antipode
