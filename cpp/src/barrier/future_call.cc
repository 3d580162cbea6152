#include "barrier/future_call.h"

#include <algorithm>
#include <utility>

namespace antipode {

FutureCall::FutureCall(const BarrierOptions& options, Clock& clock, Purpose purpose, std::function<void(Ending)> ended)
    : call_(options, clock, purpose), clock_(clock), ended_(std::move(ended)) {}

template <typename Does>
void FutureCall::Guarded(Does does) {
  try {
    does();
  } catch (...) {
    ended_(std::current_exception());
  }
}

void FutureCall::Begin(Later& later) {
  later_ = &later;
  Guarded([this] {
    comparison_ = call_.Compare();
    if (!comparison_) return AskFences();
    Await(
        [this](auto notify) {
          return std::make_shared<Waiter>(comparison_->wait(), std::move(notify), clock_, Purpose::kCheck);
        },
        std::min(call_.LeftS(), kLookS), &FutureCall::Compared);
  });
}

void FutureCall::Compared() {
  call_.Compared(*comparison_);
  AskFences();
}

void FutureCall::AskFences() {
  if (call_.plan().fenced.empty()) return AwaitAll();
  const Fences fences = call_.AskFences();
  {
    const std::lock_guard guard(lock_);
    fences_ = fences;
  }
  const std::uint64_t step = BeginStep(&FutureCall::Fenced);
  EndAfter(step, call_.FenceS());
  // Each holds this call, and so the others, until it is done or cancelled.
  for (const auto& [name, fence] : fences) {
    fence->OnDone([self = shared_from_this(), step] {
      if (self->HasFences()) self->EndSoon(step);
    });
  }
}

bool FutureCall::HasFences() {
  const std::lock_guard guard(lock_);
  return std::all_of(fences_.begin(), fences_.end(), [](const auto& each) { return each.second->Done(); });
}

void FutureCall::Fenced() {
  call_.RaiseFences(fences_);
  AwaitAll();
}

void FutureCall::AwaitAll() {
  Await([this](auto notify) { return call_.MakeWaiter(std::move(notify)); }, call_.LeftS(), &FutureCall::Conclude);
}

void FutureCall::Conclude() { ended_(call_.Conclude()); }

template <typename Make>
void FutureCall::Await(Make make, double timeout_s, void (FutureCall::*then)()) {
  const std::uint64_t step = BeginStep(then);
  const std::shared_ptr<Waiter> waiter = make([self = shared_from_this(), step] { self->EndSoon(step); });
  {
    const std::lock_guard guard(lock_);
    waiter_ = waiter;
  }
  waiter->Recall();
  if (waiter->Finished()) return End(step);
  EndAfter(step, timeout_s);
  waiter->Subscribe();
}

std::uint64_t FutureCall::BeginStep(void (FutureCall::*then)()) {
  const std::lock_guard guard(lock_);
  then_ = then;
  return ++step_;
}

void FutureCall::EndAfter(std::uint64_t step, double timeout_s) {
  const std::lock_guard guard(lock_);
  if (over_ || step != step_) return;
  deadline_ = later_->At(clock_.Now() + timeout_s, [self = shared_from_this(), step] { self->End(step); });
}

void FutureCall::EndSoon(std::uint64_t step) {
  later_->At(clock_.Now(), [self = shared_from_this(), step] { self->End(step); });
}

void FutureCall::End(std::uint64_t step) {
  void (FutureCall::*then)() = nullptr;
  std::shared_ptr<Waiter> waiter;
  {
    const std::lock_guard guard(lock_);
    if (over_ || step != step_) return;
    ++step_;
    if (deadline_) later_->Forget(*std::exchange(deadline_, std::nullopt));
    then = then_;
    waiter.swap(waiter_);
  }
  if (waiter) waiter->Cancel();
  Guarded([&] { (this->*then)(); });
}

void FutureCall::Cancel() {
  std::shared_ptr<Waiter> waiter;
  {
    const std::lock_guard guard(lock_);
    if (std::exchange(over_, true)) return;
    if (deadline_) later_->Forget(*deadline_);
    waiter.swap(waiter_);
    for (const auto& [name, fence] : fences_) fence->Cancel();
  }
  if (waiter) waiter->Cancel();
}

}  // namespace antipode
