#include "dry_run/staleness_check.h"

#include <utility>

#include "barrier/registry.h"

namespace antipode::dry_run {
namespace {

/// Seconds after a read within which its dependencies are checked.
constexpr double kBoundS = 10;

bool IsShown(Status status) { return status == Status::kVisible || status == Status::kSuperseded; }
bool IsAbsent(Status status) { return status == Status::kNotYet || status == Status::kLost; }

}  // namespace

std::shared_ptr<StalenessCheck> StalenessCheck::Of(Store& client, const std::vector<Dependency>& missed, Found found) {
  auto watcher = registry::SharedWatcher(client);
  std::set<Dependency> wanted;
  for (const Dependency& each : missed) {
    if (client.Promises() || std::holds_alternative<WriteId>(each)) wanted.insert(each);
  }
  if (!watcher || wanted.empty()) return nullptr;
  return std::make_shared<StalenessCheck>(client, std::move(watcher), std::move(wanted), std::move(found));
}

StalenessCheck::StalenessCheck(Store& client, std::shared_ptr<Watcher> watcher, std::set<Dependency> missed,
                               Found found)
    : datastore_(client.datastore()),
      watcher_(std::move(watcher)),
      clock_(client.clock()),
      found_(std::move(found)),
      read_s_(clock_.Now()),
      left_(std::move(missed)) {}

void StalenessCheck::Begin() { watcher_->Subscribe(shared_from_this()); }

void StalenessCheck::Stop() {
  End(std::nullopt);
  watcher_->Unsubscribe(shared_from_this());
}

bool StalenessCheck::Late() const { return ElapsedS() > kBoundS; }
double StalenessCheck::ElapsedS() const { return clock_.Now() - read_s_; }

std::set<Dependency> StalenessCheck::Wanted(const std::string&) {
  if (Late()) End(std::nullopt);
  const std::lock_guard guard(lock_);
  return over_ ? std::set<Dependency>() : left_;
}

void StalenessCheck::Take(const std::string&, const Observation& observation) {
  bool shown = false;
  bool pending = true;
  {
    const std::lock_guard guard(lock_);
    bool absent = false;
    for (auto each = left_.begin(); each != left_.end();) {
      const Status status = observation.Of(*each).first;
      absent = absent || IsAbsent(status);
      pending = pending && (IsShown(status) || IsPending(status));
      each = IsShown(status) ? left_.erase(each) : std::next(each);
    }
    if (!looked_.IsSet()) confirmed_ = absent;  // Only the first says what the read can have shown.
    shown = left_.empty();
  }
  if (shown) {
    End(ElapsedS());
  } else if (!pending) {
    End(std::nullopt);
  }
  looked_.Set();
}

void StalenessCheck::Failed(const std::string&, const std::string&) { End(std::nullopt); }

void StalenessCheck::End(std::optional<double> waited_s) {
  bool confirmed = false;
  {
    const std::lock_guard guard(lock_);
    if (std::exchange(over_, true)) return;
    confirmed = confirmed_;
  }
  found_(*this, confirmed, waited_s);
  looked_.Set();
}

}  // namespace antipode::dry_run
