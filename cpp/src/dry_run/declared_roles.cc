#include "dry_run/declared_roles.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "runtime/clock.h"
#include "runtime/thrown.h"

namespace antipode::dry_run {
namespace {

/// How long connecting and asking may take, each.
constexpr double kAskS = 2;

}  // namespace

/// Asks one server, and is gone once it has answered.
class DeclaredRoles::Question final : public Stepper {
 public:
  Question(std::weak_ptr<Store> client, std::function<void()> report)
      : client_(std::move(client)), report_(std::move(report)) {}
  ~Question() override { answered_->Set(); }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  [[nodiscard]] std::shared_ptr<const Wake> answered() const { return answered_; }

  std::optional<double> Step() override {
    if (IsReplica()) report_();
    return std::nullopt;
  }
  void Pause(double) override {}
  [[nodiscard]] bool Woken() const override { return false; }

 private:
  [[nodiscard]] bool IsReplica() const {
    const auto client = client_.lock();
    if (!client) return false;
    try {
      return client->OpenEndpoint(kAskS)->IsReplica(kAskS);
    } catch (...) {
      Thrown();
      return false;  // Whatever a client library throws, nothing is known then.
    }
  }

  std::weak_ptr<Store> client_;
  std::function<void()> report_;
  std::shared_ptr<Wake> answered_ = std::make_shared<Wake>();
};

bool DeclaredRoles::Known(const Store& client) const {
  const std::lock_guard guard(lock_);
  return asked_.count(client.weak_from_this()) != 0;
}

void DeclaredRoles::Ask(Store& client, std::function<void()> report) {
  const auto question = std::make_shared<Question>(client.weak_from_this(), std::move(report));
  {
    const std::lock_guard guard(lock_);
    for (auto each = asked_.begin(); each != asked_.end();) {
      each = each->expired() ? asked_.erase(each) : std::next(each);
    }
    if (!asked_.insert(client.weak_from_this()).second) return;
    asking_.erase(
        std::remove_if(asking_.begin(), asking_.end(), [](const Asking& each) { return each.answered->IsSet(); }),
        asking_.end());
    asking_.push_back({getpid(), question->answered()});
  }
  try {
    client.clock().Spawn(question);
  } catch (const std::system_error&) {  // There is no thread for it: nothing is known.
  }
}

void DeclaredRoles::Settle(double timeout_s) {
  std::vector<Asking> asking;
  {
    const std::lock_guard guard(lock_);
    asking = asking_;
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  for (const Asking& each : asking) {
    if (each.process != getpid()) continue;
    const std::chrono::duration<double> left = until - std::chrono::steady_clock::now();
    each.answered->Wait(std::max(left.count(), 0.0));
  }
}

}  // namespace antipode::dry_run
