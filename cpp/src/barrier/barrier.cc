// The ways to call a barrier.
#include "antipode/barrier.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <system_error>

#include "barrier/call.h"
#include "barrier/future_call.h"
#include "barrier/registry.h"
#include "request/inside.h"
#include "runtime/background.h"
#include "runtime/dry_run.h"
#include "runtime/observers.h"
#include "runtime/random_hex.h"
#include "runtime/thrown.h"

namespace antipode {

struct Cancellable::State {
  std::mutex lock;
  bool over = false;  ///< It is called back, or was.
  bool cancelled = false;
  std::weak_ptr<FutureCall> call;  ///< It holds this, for the callback.
};

namespace {

constexpr std::size_t kPromiseDigits = 32;

/// Waits until `finished` is set, or the waiter's deadline, which a check from this thread may come near.
void Await(const std::shared_ptr<Waiter>& waiter, const Wake& finished) {
  waiter->Recall();
  if (waiter->Finished() || (waiter->LookHere() && waiter->Finished())) return;
  waiter->Subscribe();
  finished.Wait(waiter->LeftS());
  waiter->Cancel();
}

/// Waits in this thread until the barrier is finished, or `finished` is set.
void Run(Call& call, Wake& finished) {
  if (const auto comparison = call.Compare()) {
    Wake compared;
    const auto waiter = std::make_shared<Waiter>(
        comparison->wait(), [&compared] { compared.Set(); }, call.clock(), Purpose::kCheck);
    Await(waiter, compared);
    waiter->Cancel();
    call.Compared(*comparison);
  }
  if (!call.plan().fenced.empty()) {
    const auto fences = call.AskFences();
    const double until_s = call.clock().Now() + call.FenceS();
    for (const auto& [name, fence] : fences) fence->Wait(std::max(until_s - call.clock().Now(), 0.0));
    call.RaiseFences(fences);
  }
  const auto waiter = call.MakeWaiter([&finished] { finished.Set(); });
  Await(waiter, finished);
  waiter->Cancel();
}

/// A barrier that is on its way. Throws what is wrong with it.
std::shared_ptr<FutureCall> Begun(const BarrierOptions& options, std::function<void(FutureCall::Ending)> ended) {
  const auto call = std::make_shared<FutureCall>(options, SystemClock(), Purpose::kBarrier, std::move(ended));
  try {
    call->Begin(background::Timekeeper());
  } catch (const std::system_error& error) {
    call->NotStarted(error.what());
  }
  return call;
}

}  // namespace

BarrierResult Barrier(const BarrierOptions& options) {
  Call call(options, SystemClock());
  Wake finished;
  Run(call, finished);
  return call.Conclude();
}

BarrierResult Route(const BarrierOptions& options, Clock& clock) {
  Call call(options, clock, Purpose::kRoute);
  Wake finished;
  Run(call, finished);
  return call.Conclude();
}

BarrierAttempt TryBarrier(const BarrierOptions& options) noexcept {
  try {
    return {Barrier(options), "", ""};
  } catch (const UnmetError& error) {
    return {error.result(), error.code(), error.what()};
  } catch (const AntipodeError& error) {
    return {{}, error.code(), error.what()};
  } catch (const std::exception& error) {
    return {{}, "argument", error.what()};
  }
}

std::future<BarrierResult> BarrierAsync(const BarrierOptions& options) {
  const auto promised = std::make_shared<std::promise<BarrierResult>>();
  Begun(options, [promised](const FutureCall::Ending& ending) {
    if (const auto* error = std::get_if<std::exception_ptr>(&ending)) {
      promised->set_exception(*error);
    } else {
      promised->set_value(std::get<BarrierResult>(ending));
    }
  });
  return promised->get_future();
}

bool Cancellable::Cancel() {
  {
    const std::lock_guard guard(state_->lock);
    if (state_->over) return false;
    state_->cancelled = true;
  }
  if (const auto call = state_->call.lock()) call->Cancel();
  return true;
}

Cancellable BarrierCallback(std::function<void(const BarrierResult&)> callback, const BarrierOptions& options) {
  BarrierOptions returning = options;
  returning.raise_unmet = false;
  Cancellable handle;
  handle.state_ = std::make_shared<Cancellable::State>();
  const auto call_back = [callback = std::move(callback), state = handle.state_,
                          captured = Capture()](const FutureCall::Ending& ending) {
    {
      const std::lock_guard over(state->lock);
      if (state->cancelled) return;
      state->over = true;
    }
    const ScopeGuard guard(captured);
    try {
      if (const auto* error = std::get_if<std::exception_ptr>(&ending)) std::rethrow_exception(*error);
      callback(std::get<BarrierResult>(ending));
    } catch (...) {  // What a callback throws never escapes.
      const std::string thrown = Thrown();
      WarnOnce("callback", "", thrown, "the callback of a barrier failed: " + thrown);
    }
  };
  handle.state_->call = Begun(returning, [call_back](const FutureCall::Ending& ending) {
    try {
      background::Call([call_back, ending] { call_back(ending); });
    } catch (const std::system_error&) {  // There is no thread for it: here, rather than never.
      call_back(ending);
    }
  });
  return handle;
}

BarrierResult Check(const BarrierOptions& options, bool refresh) {
  BarrierOptions looking;
  looking.lineage = options.lineage;
  looking.only = options.only;
  looking.exclude = options.exclude;
  looking.timeout = Seconds(kLookS);
  looking.raise_unmet = false;
  Call call(looking, SystemClock(), Purpose::kCheck);
  if (refresh) {
    Wake finished;
    Run(call, finished);
  } else {
    call.MakeWaiter([] {})->Recall();
  }
  return call.Conclude();
}

Promise MakePromise(const std::string& datastore, Seconds expires_in) {
  const double most_s = CurrentSettings().max_promise.count();
  if (!(expires_in.count() > 0) || expires_in.count() > most_s) {
    throw std::invalid_argument("a promise expires in a positive number of seconds, at most max_promise");
  }
  const double expires_s = std::ceil(SystemClock().UnixSeconds() + expires_in.count());
  Promise made{datastore, RandomHex(kPromiseDigits), static_cast<std::uint64_t>(expires_s)};
  const Lineage lineage(LineageParts{{}, {}, {made}, 0, {}});
  if (const auto scope = CurrentScope()) {
    scope->Merge(lineage);
    if (const auto observer = DryRunNow()) observer->Wrote(*scope, made, false);
  } else {
    Unscoped("promise", datastore, CurrentSettings().on_unscoped);
  }
  return made;
}

std::uint64_t RecordSeconds(const Promise& promise) {
  const Settings settings = CurrentSettings();
  const double kept_s = std::max(settings.horizon.count(), kPromiseGraceS) + kPromiseGraceS;
  const double lives_s =
      std::min(static_cast<double>(promise.expires_s) - SystemClock().UnixSeconds(), settings.max_promise.count());
  return static_cast<std::uint64_t>(std::ceil(std::max(lives_s, 0.0) + kept_s));
}

bool Abandon(const Promise& promise, Seconds timeout) {
  for (const auto& store : registry::StoresOf(promise.datastore)) {
    if (!store->Abandons()) continue;
    const bool abandoned =
        store->AbandonPromise(promise, std::min(timeout.count(), CurrentSettings().max_timeout.count()));
    Count(abandoned ? "promise_abandoned" : "promise_fulfilled_first", promise.datastore);
    return abandoned;
  }
  throw ConfigurationError("nothing is registered for '" + promise.datastore +
                           "' that can record that a promise was abandoned: register a shim of its primary");
}

}  // namespace antipode
