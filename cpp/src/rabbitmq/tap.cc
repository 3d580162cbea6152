#include "rabbitmq/tap.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "antipode/errors.h"
#include "antipode/observer.h"
#include "rabbitmq/headers.h"

namespace antipode::rabbitmq {
namespace {

/// Messages that the broker holds for a tap that does not keep up; the oldest are dropped over it, which leaves a gap
/// that is reported.
constexpr int kMostQueued = 100'000;
constexpr double kRetryLeastS = 0.05;
constexpr double kRetryMostS = 2;
constexpr double kFirstS = 15;
/// Replies with which a broker refuses a user, a virtual host or an exchange for good.
constexpr std::array<std::uint16_t, 3> kRefusals{AMQP_ACCESS_REFUSED, AMQP_NOT_FOUND, AMQP_NOT_ALLOWED};

bool IsRefusal(const Closed& error) {
  return std::find(kRefusals.begin(), kRefusals.end(), error.code()) != kRefusals.end();
}

}  // namespace

Tap::Tap(Place place, std::string exchange, Receipts receipts, std::shared_ptr<Ledger> ledger, std::string datastore)
    : place_(std::move(place)),
      exchange_(std::move(exchange)),
      receipts_(std::move(receipts)),
      ledger_(std::move(ledger)),
      datastore_(std::move(datastore)) {
  if (exchange_.empty()) {
    throw ConfigurationError("receipts of '" + datastore_ +
                             "' need an exchange: the default one takes no bindings; for a queue whose messages all "
                             "come to this process let the bindings be empty");
  }
  thread_ = std::thread([this] { Run(); });
}

void Tap::AwaitAttempt() {
  std::unique_lock guard(lock_);
  changed_.wait_for(guard, std::chrono::duration<double>(kFirstS), [this] { return tried_; });
}

void Tap::Await() {
  AwaitAttempt();
  std::unique_lock guard(lock_);
  if (!refused_) return;
  const std::string cause = *refused_;
  guard.unlock();
  Close();
  throw ConfigurationError(cause);
}

Tap::~Tap() { Close(); }

std::string Tap::Queue() const {
  const std::lock_guard guard(lock_);
  return queue_;
}

std::string Tap::Deaf() const {
  const std::lock_guard guard(lock_);
  return queue_.empty() ? "the receipts are not connected: " + cause_ : "";
}

void Tap::Close() {
  {
    const std::lock_guard guard(lock_);
    closed_ = true;
    changed_.notify_all();
  }
  interrupter_.Interrupt();
  const std::lock_guard guard(joining_);
  if (thread_.joinable()) thread_.join();
}

void Tap::Run() {
  double retry_s = kRetryLeastS;
  do {
    std::string cause;
    bool refused = false;
    try {
      Listen();
    } catch (const ConfigurationError& error) {
      cause = error.what();
      refused = true;
    } catch (const std::exception& error) {
      cause = error.what();
    }
    retry_s = Queue().empty() ? std::min(retry_s * 2, kRetryMostS) : kRetryLeastS;
    Lost(cause, refused);
  } while (!ClosedWithin(retry_s));
}

bool Tap::ClosedWithin(double seconds) {
  std::unique_lock guard(lock_);
  return changed_.wait_for(guard, std::chrono::duration<double>(seconds), [this] { return closed_; });
}

/// Notifies whoever waits that nothing is heard any more.
void Tap::Lost(const std::string& cause, bool refused) {
  bool closed = false;
  {
    const std::lock_guard guard(lock_);
    closed = closed_;
    queue_.clear();
    cause_ = cause;
    if (refused) refused_ = cause;
    tried_ = true;
    changed_.notify_all();
  }
  if (!closed) Count("receipts_lost", datastore_);
  ledger_->WakeUp();
}

void Tap::Listen() {
  std::unique_ptr<Channel> channel;
  std::string queue;
  try {
    channel = std::make_unique<Channel>(place_, For::kListening, &interrupter_);
    queue = channel->Bind(exchange_, receipts_.bindings, kMostQueued);
  } catch (const Closed& error) {
    if (!IsRefusal(error)) throw;
    throw ConfigurationError("receipts of '" + datastore_ + "': the broker refuses a tap on the exchange '" +
                             exchange_ + "' (it must exist, and the user may bind to it): " + error.what());
  }
  ledger_->Listening();  // What is routed from here on lies in the queue.
  channel->Consume(queue);
  Listening(queue);
  ledger_->WakeUp();
  while (true) Heard(channel->Heard());
}

/// The tap hears from now on.
void Tap::Listening(const std::string& queue) {
  const std::lock_guard guard(lock_);
  queue_ = queue;
  cause_.clear();
  refused_.reset();
  tried_ = true;
  changed_.notify_all();
}

void Tap::Heard(const Headers& headers) {
  const auto unreadable = [this](const char* what, const std::exception& error) {
    Count("unreadable", datastore_);
    WarnOnce("unreadable", datastore_, what,
             "a publication in '" + datastore_ + "' says " + what + " unreadably: " + error.what());
  };
  try {
    const auto promise = OwnPromise(headers);
    if (promise && promise->datastore == datastore_) ledger_->Fulfil(*promise);
  } catch (const std::exception& error) {
    unreadable("which promise it fulfils", error);
  }
  try {
    const auto write = OwnWrite(headers);
    if (write && write->datastore == datastore_) ledger_->See(*write);
  } catch (const std::exception& error) {
    unreadable("its name", error);
  }
}

}  // namespace antipode::rabbitmq
