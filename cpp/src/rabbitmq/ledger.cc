#include "rabbitmq/ledger.h"

#include <algorithm>
#include <cstddef>
#include <variant>

#include "rabbitmq/publisher.h"

namespace antipode::rabbitmq {
namespace {

constexpr std::size_t kMostPublishers = 4'096;  ///< Over it the one heard first is forgotten.
constexpr std::size_t kMostAhead = 1'024;       ///< Of a gap, for each publisher.
constexpr std::size_t kMostAsked = 4'096;       ///< Publications whose first question, and deliveries, are remembered.
constexpr std::size_t kMostFulfilled = 65'536;  ///< Promises.
/// By how much the clocks of publishers and readers may differ.
constexpr double kSkewS = 5;

/// For how long after its expiry a promise may still be fulfilled, as barriers have it.
constexpr double kPromiseGraceS = 3'600;

constexpr char kNoNumber[] = "not a publication with a number: forged, or not ours";
constexpr char kGap[] =
    "an earlier publication of this publisher never arrived here though later ones did: it was published before this "
    "process listened, refused, or lost";
constexpr char kMissed[] = "what fulfils it may have passed before this process listened, or was forgotten since";
constexpr char kStranger[] = "its publisher began before this process listened, or was forgotten since";
constexpr char kWasAway[] = "it may have passed while the connection of the receipts was down";

}  // namespace

void Ledger::Publisher::See(std::uint64_t version, double now_s) {
  if (version <= prefix || ahead.count(version) != 0) return;
  if (version != prefix + 1) {
    if (ahead.empty()) gap_since_s = now_s;
    ahead.insert(version);
    if (ahead.size() > kMostAhead) {
      broken = true;
      ahead.clear();
    }
    return;
  }
  if (broken) return;
  prefix = version;
  while (ahead.erase(prefix + 1) != 0) ++prefix;
  if (!ahead.empty()) gap_since_s = now_s;
}

Ledger::Ledger(double gap_age_s, const Clock& clock)
    : gap_age_s_(gap_age_s), clock_(clock), remembers_from_s_(clock.UnixSeconds()) {}

void Ledger::Listening() {
  const std::lock_guard guard(lock_);
  ++epoch_;
  remembers_from_s_ = std::max(remembers_from_s_, clock_.UnixSeconds());
  Changed();
}

void Ledger::See(const WriteId& write) {
  const auto* number = std::get_if<std::uint64_t>(&write.version);
  if (number == nullptr) return;
  const std::lock_guard guard(lock_);
  Noticed(write.key, *number);
}

void Ledger::Deliver(const WriteId& write, std::uint64_t after) {
  const auto* number = std::get_if<std::uint64_t>(&write.version);
  if (number == nullptr) return;
  const std::lock_guard guard(lock_);
  delivered_.Add({write.key, *number}, after) = after;
  if (delivered_.size() > kMostAsked) delivered_.PopFirst();
  Noticed(write.key, *number);
}

void Ledger::Noticed(const std::string& key, std::uint64_t version) {
  Publisher& publisher = publishers_.Add(key, {});
  publisher.See(version, clock_.Now());
  publisher.epoch = epoch_;
  if (publishers_.size() > kMostPublishers) ForgetFirstPublisher();
  Changed();
}

/// Notes as well what may be forgotten now.
void Ledger::ForgetFirstPublisher() {
  const auto born_s = BornAt(publishers_.PopFirst());
  if (born_s) remembers_from_s_ = std::max(remembers_from_s_, std::min(*born_s, clock_.UnixSeconds()));
}

void Ledger::Fulfil(const Promise& promise) {
  const std::lock_guard guard(lock_);
  fulfilled_.Add(promise.id, true);
  if (fulfilled_.size() > kMostFulfilled) fulfilled_.PopFirst();
  Changed();
}

Ledger::Said Ledger::Judge(const WriteId& write) {
  const auto* number = std::get_if<std::uint64_t>(&write.version);
  if (number == nullptr) return {Status::kUndecidable, kNoNumber};
  const Name name{write.key, *number};
  const std::lock_guard guard(lock_);
  const Publisher* publisher = publishers_.Find(write.key);
  const std::uint64_t prefix = publisher == nullptr ? 0 : publisher->prefix;
  const std::uint64_t* after = delivered_.Find(name);
  if (*number <= prefix || (after != nullptr && prefix >= *after)) {
    asked_.Erase(name);
    return {Status::kVisible, ""};
  }
  const bool patient = Patient(name);
  if (publisher == nullptr) return JudgeStranger(write.key, patient);
  const bool old_gap = !publisher->ahead.empty() && clock_.Now() - publisher->gap_since_s >= gap_age_s_;
  if (publisher->broken || old_gap) return {Status::kUndecidable, kGap};
  if (publisher->epoch != epoch_ && !patient) return {Status::kUndecidable, kWasAway};
  return {Status::kNotYet, ""};
}

/// Whether a write has been waited for less than a gap's age.
bool Ledger::Patient(const Name& name) {
  const double now_s = clock_.Now();
  const double first_s = asked_.Add(name, now_s);
  if (asked_.size() > kMostAsked) asked_.PopFirst();
  return now_s - first_s < gap_age_s_;
}

Ledger::Said Ledger::JudgeStranger(const std::string& key, bool patient) const {
  const auto born_s = BornAt(key);
  if (!born_s) return {Status::kUnknownLog, kStranger};
  if (*born_s > remembers_from_s_ + kSkewS) return {Status::kNotYet, ""};
  // It published for a minute at the most: what it sent is either old, or may be on its way.
  const bool over = clock_.UnixSeconds() > *born_s + kRollS + kSkewS + gap_age_s_;
  if (!patient || over) return {Status::kUnknownLog, kStranger};
  return {Status::kNotYet, ""};
}

Ledger::Said Ledger::Judge(const Promise& promise) {
  const std::lock_guard guard(lock_);
  if (fulfilled_.Find(promise.id) != nullptr) return {Status::kVisible, ""};
  if (static_cast<double>(promise.expires_s) + kPromiseGraceS < clock_.UnixSeconds()) {
    return {Status::kUndecidable, kMissed};
  }
  return {Status::kNotYet, ""};
}

std::uint64_t Ledger::Changes() const {
  const std::lock_guard guard(lock_);
  return changes_;
}

void Ledger::Pause(double timeout_s, Wake& wake, std::uint64_t changes) {
  {
    const std::lock_guard guard(lock_);
    if (changes_ != changes) return;
    waiting_.insert(&wake);
  }
  wake.Wait(timeout_s);
  const std::lock_guard guard(lock_);
  waiting_.erase(&wake);
}

void Ledger::WakeUp() {
  const std::lock_guard guard(lock_);
  Changed();
}

void Ledger::Changed() {
  ++changes_;
  for (Wake* each : waiting_) each->Set();
}

}  // namespace antipode::rabbitmq
