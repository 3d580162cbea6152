// Who waits at a watcher, in order: what a check must ask for, and whom what it showed meets.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "antipode/shim.h"

namespace antipode {

/// Somebody who waits at a watcher. Called from the watcher's thread.
class Subscriber {
 public:
  virtual ~Subscriber() = default;
  /// What it still waits for; empty when it waits no longer.
  virtual std::set<Dependency> Wanted(const std::string& datastore) = 0;
  /// Learns that an earlier check, of which it was not told, left it waiting.
  virtual void WaitedOn(double at_s);
  virtual void Take(const std::string& datastore, const Observation& observation) = 0;
  virtual void Unreached(const std::string& datastore, const std::string& cause) = 0;
  virtual void Failed(const std::string& datastore, const std::string& cause) = 0;
};

/// Of one log, or one key, a larger version comes after a smaller. So what a server does not show yet at one version it
/// shows at none after it, and what it shows at one it shows at all before it: a check asks for the first of those that
/// wait there and for the last, and costs what became visible.
///
/// Each stands wherever the last check of which it was told had not met what it wants. A check that shows all that one
/// wants shows it there, too: it ends the wait, or the next one does that asks for all of it, at once. No I/O, clock or
/// lock; not thread-safe.
class Subscribers {
 public:
  static constexpr std::size_t kMostPlaces = 100;  ///< Logs and keys that one check asks about.
  static constexpr std::size_t kFew = 8;  ///< Of those that wait at one place, how many it asks for all they want.

  struct Waiting;
  using One = std::shared_ptr<Waiting>;
  /// One to tell of a check; when the one before left it waiting, none where it knows.
  struct Tell {
    One one;
    std::optional<double> left_s;
  };
  /// Whom to tell of a check, and what.
  struct Told {
    Observation observation;
    std::vector<Tell> whom;
  };

  [[nodiscard]] bool empty() const { return all_.empty(); }
  /// When those that wait joined.
  [[nodiscard]] const std::multiset<std::int64_t>& joined() const { return joined_; }
  /// Whether anybody waits for a promise.
  [[nodiscard]] bool promised() const { return promised_ > 0; }
  /// Whether the next check comes at once: the last one was not about all of it.
  [[nodiscard]] bool unasked() const { return unasked_; }
  [[nodiscard]] static Subscriber& Of(const One& one);

  /// Takes somebody in; one that waits already is asked for once more.
  void Join(const std::shared_ptr<Subscriber>& subscriber, const std::set<Dependency>& wants, std::int64_t now_us);
  /// Forgets somebody who may wait.
  void Leave(const std::shared_ptr<Subscriber>& subscriber);
  /// Forgets everybody.
  std::vector<std::shared_ptr<Subscriber>> Clear();
  /// What the next check is for: at most so many places, or all that one wants.
  std::set<Dependency> Asks();
  /// Whom to tell that the check failed: all who waited when it began.
  std::vector<One> Failed();
  /// Takes in what the check for what `Asks` returned shows.
  Told Shown(const Observation& observation, double now_s);
  /// Forgets those who were told and wait no longer; when they joined.
  std::vector<std::int64_t> Settle(const std::vector<One>& told, const std::string& datastore);

 private:
  /// A log or a key; what has no order is a place of its own.
  struct Name {
    std::string datastore;
    std::string key;
    std::optional<Dependency> alone;
    static Name Of(const Dependency& each);
    [[nodiscard]] bool IsPromise() const { return alone && std::holds_alternative<Promise>(*alone); }
    bool operator<(const Name& other) const;
  };
  /// Where one waits: a place, and a version there.
  using Stand = std::pair<Name, std::uint64_t>;
  /// Which version one waits for at a place, and in which order it joined.
  using Rank = std::pair<std::uint64_t, std::uint64_t>;
  using Versions = std::map<Name, std::uint64_t>;
  /// In the order in which they joined.
  using Ones = std::map<std::uint64_t, One>;

  /// Those that stand at one place, in order.
  struct Place {
    std::map<Rank, One> ranks;
    std::size_t few = kFew;
    std::uint64_t turn = 0;
    [[nodiscard]] std::vector<One> First() const;
  };
  /// The last check that showed anything: which one, when, and what.
  struct Last {
    std::uint64_t number = 0;
    double now_s = 0;
    Observation observation;
  };

  static std::uint64_t VersionOf(const Dependency& each);
  static bool IsMet(const Dependency& each, const Versions& met);
  void TakeTurns();
  bool Ask(const One& one, std::size_t most);
  void AskSoon(const One& one);
  void AskAgain(const std::vector<One>& some);
  [[nodiscard]] std::vector<One> All() const;
  void SortOut(const Observation& observation, Versions& late, Versions& met, std::vector<Stand>& over) const;
  void TakeMet(const Versions& late, const Versions& met, Ones& touched);
  Told Judged(const Observation& observation, double now_s, const Ones& touched, const Versions& met);
  void Move(const One& one, const std::set<Dependency>& wants);
  void TakePlace(const One& one, const Stand& at);
  void LeavePlace(const One& one, const Stand& at);
  Ones Taken(const Name& name, std::uint64_t from, std::uint64_t to);
  void DropIfEmpty(const Name& name);
  void Forget(const One& one);

  std::map<std::shared_ptr<Subscriber>, One> all_;
  std::multiset<std::int64_t> joined_;
  std::map<Name, Place> places_;
  std::map<std::uint64_t, Name> turns_;  ///< The places, in turn.
  std::map<std::uint64_t, One> due_;     ///< To be asked for whole.
  std::uint64_t next_ = 1;               ///< Of turns, and of those that are due.
  std::size_t left_ = 0;                 ///< Places of this round that no check was about.
  std::size_t promised_ = 0;             ///< Places that are promises.
  std::uint64_t joins_ = 0;
  std::uint64_t checks_ = 0;
  std::uint64_t begun_ = 0;     ///< How many had joined when the last check began.
  std::uint64_t told_all_ = 0;  ///< The last check of which everybody was told.
  bool first_ = true;           ///< Whether a pause came before the last check.
  bool moved_ = false;          ///< Whether everybody is asked for whole after the next pause.
  bool unasked_ = false;
  std::vector<One> asked_;
  std::set<Dependency> wanted_;
  std::set<Name> about_;
  Last last_;
};

}  // namespace antipode
