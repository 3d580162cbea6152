#include "barrier/subscribers.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace antipode {
namespace {

/// How many times as many a check asks for where all of a few were met.
constexpr std::size_t kMore = 4;
constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

bool IsOrdered(const Dependency& each) {
  const auto* write = std::get_if<WriteId>(&each);
  return write != nullptr && std::holds_alternative<std::uint64_t>(write->version);
}

}  // namespace

void Subscriber::WaitedOn(double) {}

struct Subscribers::Waiting {
  std::shared_ptr<Subscriber> subscriber;
  std::uint64_t number = 0;  ///< In which order it joined.
  std::int64_t joined_us = 0;
  std::uint64_t told = 0;   ///< The last check of which it was told, or that was before it joined.
  std::uint64_t asked = 0;  ///< The last check that asked for all that it wants.
  std::uint64_t due = 0;    ///< Under which number it is due; 0 where it is not.
  std::set<Dependency> wanted;
  std::set<Name> names;
  std::set<Stand> stands;  ///< What of that no check has met.
};

Subscriber& Subscribers::Of(const One& one) { return *one->subscriber; }

Subscribers::Name Subscribers::Name::Of(const Dependency& each) {
  if (!IsOrdered(each)) return {"", "", each};
  const auto& write = std::get<WriteId>(each);
  return {write.datastore, write.key, std::nullopt};
}

bool Subscribers::Name::operator<(const Name& other) const {
  return std::tie(datastore, key, alone) < std::tie(other.datastore, other.key, other.alone);
}

std::vector<Subscribers::One> Subscribers::Place::First() const {
  std::vector<One> first;
  for (auto each = ranks.begin(); each != ranks.end() && first.size() < few; ++each) first.push_back(each->second);
  return first;
}

std::uint64_t Subscribers::VersionOf(const Dependency& each) {
  return IsOrdered(each) ? std::get<std::uint64_t>(std::get<WriteId>(each).version) : 0;
}

void Subscribers::Join(const std::shared_ptr<Subscriber>& subscriber, const std::set<Dependency>& wants,
                       std::int64_t now_us) {
  One& one = all_[subscriber];
  if (!one) {
    one = std::make_shared<Waiting>();
    one->subscriber = subscriber;
    one->number = joins_++;
    one->joined_us = now_us;
    one->told = checks_;
    joined_.insert(now_us);
  }
  Move(one, wants);
  AskSoon(one);
}

void Subscribers::Leave(const std::shared_ptr<Subscriber>& subscriber) {
  const auto found = all_.find(subscriber);
  if (found != all_.end()) Forget(One(found->second));
}

void Subscribers::Forget(const One& one) {
  joined_.erase(joined_.find(one->joined_us));
  due_.erase(one->due);
  const auto stands = one->stands;
  for (const Stand& each : stands) LeavePlace(one, each);
  all_.erase(one->subscriber);
}

std::vector<std::shared_ptr<Subscriber>> Subscribers::Clear() {
  std::vector<std::shared_ptr<Subscriber>> left;
  for (const auto& [subscriber, one] : all_) left.push_back(subscriber);
  for (const auto& each : left) Leave(each);
  return left;
}

std::set<Dependency> Subscribers::Asks() {
  ++checks_;
  begun_ = joins_;
  asked_.clear();
  wanted_.clear();
  about_.clear();
  first_ = !unasked_;
  if (first_) {
    left_ = places_.size();
    if (std::exchange(moved_, false)) {
      for (const One& each : All()) AskSoon(each);
    }
  }
  while (!due_.empty() && Ask(due_.begin()->second, kMostPlaces / 2)) {
    due_.begin()->second->due = 0;
    due_.erase(due_.begin());
  }
  TakeTurns();
  return wanted_;
}

/// Asks for the first of those at the places whose turn it is, and for the last.
void Subscribers::TakeTurns() {
  std::vector<Name> next;
  for (auto turn = turns_.begin(); turn != turns_.end() && next.size() < std::min(left_, kMostPlaces); ++turn) {
    next.push_back(turn->second);
  }
  for (const Name& name : next) {
    Place& place = places_.at(name);
    const auto first = place.First();
    if (!Ask(first.front(), kMostPlaces)) return;
    for (const One& each : first) Ask(each, kMostPlaces);
    Ask(place.ranks.rbegin()->second, kMostPlaces);
    --left_;
    if (places_.size() <= kMostPlaces) continue;
    turns_.erase(place.turn);
    place.turn = next_++;
    turns_.emplace(place.turn, name);
  }
}

/// Asks for all that one wants; false where the check would be about too many places.
bool Subscribers::Ask(const One& one, std::size_t most) {
  if (one->asked == checks_) return true;
  const auto is_new = [this](const Name& each) { return about_.count(each) == 0; };
  const auto more = static_cast<std::size_t>(std::count_if(one->names.begin(), one->names.end(), is_new));
  if (!about_.empty() && more > 0 && about_.size() + more > most) return false;
  about_.insert(one->names.begin(), one->names.end());
  wanted_.insert(one->wanted.begin(), one->wanted.end());
  one->asked = checks_;
  asked_.push_back(one);
  return true;
}

void Subscribers::AskSoon(const One& one) {
  if (one->due != 0) return;
  one->due = next_++;
  due_.emplace(one->due, one);
}

/// Asks at once for all that those of some want whom this check did not ask for.
void Subscribers::AskAgain(const std::vector<One>& some) {
  for (const One& each : some) {
    if (each->asked == checks_) continue;
    AskSoon(each);
    unasked_ = true;
  }
}

std::vector<Subscribers::One> Subscribers::All() const {
  Ones in_order;
  for (const auto& [subscriber, one] : all_) in_order.emplace(one->number, one);
  std::vector<One> all;
  for (const auto& [number, one] : in_order) all.push_back(one);
  return all;
}

std::vector<Subscribers::One> Subscribers::Failed() {
  told_all_ = checks_;
  unasked_ = false;
  auto told = All();
  told.erase(std::remove_if(told.begin(), told.end(), [this](const One& each) { return each->number >= begun_; }),
             told.end());
  for (const One& each : told) AskSoon(each);
  return told;
}

Subscribers::Told Subscribers::Shown(const Observation& observation, double now_s) {
  Versions late;
  Versions met;
  std::vector<Stand> over;
  SortOut(observation, late, met, over);
  unasked_ = left_ > 0 || !due_.empty();
  Ones touched;
  for (const auto& [name, version] : over) {
    touched.merge(Taken(name, version, version));
    const auto place = places_.find(name);
    if (place == places_.end()) continue;
    std::vector<One> others;
    for (const auto& [rank, one] : place->second.ranks) others.push_back(one);
    AskAgain(others);
  }
  TakeMet(late, met, touched);
  return Judged(observation, now_s, touched, met);
}

/// Finds, by place, the first version that is late and the last that is met; and what is over.
void Subscribers::SortOut(const Observation& observation, Versions& late, Versions& met,
                          std::vector<Stand>& over) const {
  for (const Dependency& each : wanted_) {
    const Status status = observation.Of(each).first;
    Name name = Name::Of(each);
    const std::uint64_t version = VersionOf(each);
    if (IsPending(status)) {
      const auto held = late.try_emplace(std::move(name), version).first;
      held->second = std::min(held->second, version);
    } else if (antipode::IsMet(status)) {
      const auto held = met.try_emplace(std::move(name), version).first;
      held->second = std::max(held->second, version);
    } else {
      over.emplace_back(std::move(name), version);
    }
  }
}

void Subscribers::TakeMet(const Versions& late, const Versions& met, Ones& touched) {
  std::set<Name> known;
  for (const auto& [name, version] : late) known.insert(name);
  for (const auto& [name, version] : met) {
    known.insert(name);
    const auto taken = Taken(name, 0, version);
    touched.insert(taken.begin(), taken.end());
    const auto found = places_.find(name);
    if (taken.empty() || found == places_.end()) continue;
    Place& place = found->second;
    const auto first_late = late.find(name);
    if (first_late != late.end() && place.ranks.begin()->first.first >= first_late->second) continue;
    known.erase(name);  // All of the first are met, and more may be.
    place.few = std::min(place.few, std::numeric_limits<std::size_t>::max() / kMore) * kMore;
    AskAgain(place.First());
  }
  for (const Name& name : known) {
    if (const auto found = places_.find(name); found != places_.end()) found->second.few = kFew;
  }
}

/// Tells those whom the check asked for, and those of some of whom it shows all.
Subscribers::Told Subscribers::Judged(const Observation& observation, double now_s, const Ones& touched,
                                      const Versions& met) {
  Ones told;
  for (const One& each : asked_) told.emplace(each->number, each);
  Observation shown = observation;
  for (const auto& [number, one] : touched) {
    if (one->asked == checks_) continue;
    std::vector<WriteId> found;
    const bool all = std::all_of(one->wanted.begin(), one->wanted.end(), [&](const Dependency& each) {
      if (wanted_.count(each) != 0) return true;
      if (!IsMet(each, met)) return false;
      if (const auto* write = std::get_if<WriteId>(&each)) found.push_back(*write);
      return true;
    });
    if (all) {
      for (const WriteId& each : found) shown.statuses[each] = Status::kVisible;
      told.emplace(number, one);
    } else {
      AskAgain({one});
    }
  }
  const Last before = std::exchange(last_, {checks_, now_s, shown});
  if (before.number > 0 && shown.server != before.observation.server) {
    if (first_) {  // Its history may be another.
      AskAgain(All());
    } else {  // Where it changes from check to check, pauses stay.
      moved_ = true;
    }
  }
  Told result{std::move(shown), {}};
  for (const auto& [number, one] : told) {
    const bool late = std::max(one->told, told_all_) < before.number;
    result.whom.push_back({one, late ? std::optional(before.now_s) : std::nullopt});
  }
  return result;
}

bool Subscribers::IsMet(const Dependency& each, const Versions& met) {
  const auto until = met.find(Name::Of(each));
  return until != met.end() && VersionOf(each) <= until->second;
}

std::vector<std::int64_t> Subscribers::Settle(const std::vector<One>& told, const std::string& datastore) {
  std::vector<std::int64_t> ended;
  ended.reserve(told.size());
  for (const One& one : told) {
    const auto found = all_.find(one->subscriber);
    if (found == all_.end() || found->second != one) continue;
    one->told = checks_;
    const auto wants = one->subscriber->Wanted(datastore);
    if (wants.empty()) {
      ended.push_back(one->joined_us);
      Forget(one);
    } else {
      Move(one, wants);
    }
  }
  return ended;
}

/// Has one stand where the last check had not met what it wants.
void Subscribers::Move(const One& one, const std::set<Dependency>& wants) {
  if (wants != one->wanted) {
    one->wanted = wants;
    one->names.clear();
    for (const Dependency& each : wants) one->names.insert(Name::Of(each));
  }
  std::set<Stand> stands;
  for (const Dependency& each : wants) {
    if (IsPending(last_.observation.Of(each).first)) stands.emplace(Name::Of(each), VersionOf(each));
  }
  if (stands.empty()) {
    for (const Dependency& each : wants) stands.emplace(Name::Of(each), VersionOf(each));
  }
  const auto before = one->stands;
  for (const Stand& each : before) {
    if (stands.count(each) == 0) LeavePlace(one, each);
  }
  for (const Stand& each : stands) {
    if (one->stands.insert(each).second) TakePlace(one, each);
  }
}

void Subscribers::TakePlace(const One& one, const Stand& at) {
  const auto [place, is_new] = places_.try_emplace(at.first);
  if (is_new) {
    place->second.turn = next_++;
    turns_.emplace(place->second.turn, at.first);
    promised_ += at.first.IsPromise() ? 1 : 0;
  }
  place->second.ranks.emplace(Rank(at.second, one->number), one);
}

void Subscribers::LeavePlace(const One& one, const Stand& at) {
  one->stands.erase(at);
  places_.at(at.first).ranks.erase(Rank(at.second, one->number));
  DropIfEmpty(at.first);
}

/// Takes from a place those who wait there for one of these versions.
Subscribers::Ones Subscribers::Taken(const Name& name, std::uint64_t from, std::uint64_t to) {
  const auto place = places_.find(name);
  if (place == places_.end()) return {};
  auto& ranks = place->second.ranks;
  const auto begin = ranks.lower_bound(Rank(from, 0));
  const auto end = ranks.upper_bound(Rank(to, kLargest));
  Ones taken;
  for (auto each = begin; each != end; ++each) {
    each->second->stands.erase({name, each->first.first});
    taken.emplace(each->second->number, each->second);
  }
  ranks.erase(begin, end);
  DropIfEmpty(name);
  return taken;
}

void Subscribers::DropIfEmpty(const Name& name) {
  const auto place = places_.find(name);
  if (!place->second.ranks.empty()) return;
  promised_ -= name.IsPromise() ? 1 : 0;
  turns_.erase(place->second.turn);
  places_.erase(place);
  left_ = std::min(left_, places_.size());
}

}  // namespace antipode
