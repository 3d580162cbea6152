// Who waits at a watcher, in order: against the plain scan, which asks for all and tells all.
#include "barrier/subscribers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "barrier/decisions.h"

namespace antipode {
namespace {

constexpr std::uint64_t kNoEnd = 1'000'000'000;
/// Checks that follow each other at once: enough for all places in turn, and no endless row.
constexpr int kMostChecks = 30;

WriteId Write(const std::string& log, std::uint64_t version, bool covering = false) {
  return {"posts", log, version, 500'000, covering};
}

/// A barrier that waits at one watcher.
class Someone final : public Subscriber {
 public:
  explicit Someone(const std::set<Dependency>& wanted, std::optional<Policy> on_unknown = Policy::kRaise)
      : wait_({{"posts", wanted}}, {}, {}, PoliciesOf(on_unknown), 0, 0, 30) {}

  std::set<Dependency> Wanted(const std::string& datastore) override {
    const auto found = wait_.pending().find(datastore);
    return wait_.Finished() || found == wait_.pending().end() ? std::set<Dependency>() : found->second;
  }
  void WaitedOn(double at_s) override {
    left_s = at_s;
    wait_.WaitOn(at_s);
  }
  void Take(const std::string& datastore, const Observation& shown) override { wait_.Record(datastore, shown, 1); }
  void Unreached(const std::string& datastore, const std::string& cause) override {
    wait_.Unreached(datastore, cause, 1);
  }
  void Failed(const std::string& datastore, const std::string& cause) override { wait_.Failed(datastore, cause, 1); }

  [[nodiscard]] bool Waits() { return !Wanted("posts").empty(); }
  [[nodiscard]] std::map<Dependency, std::pair<Status, std::string>> Outcomes() const {
    std::map<Dependency, std::pair<Status, std::string>> found;
    for (const Outcome& each : wait_.Result(1).outcomes) found[each.dependency] = {each.status, each.server};
    return found;
  }

  std::optional<double> left_s;

 private:
  static Policies PoliciesOf(std::optional<Policy> on_unknown) {
    Policies policies;
    policies.on_unknown = on_unknown;
    policies.hour = 500'000;
    return policies;
  }

  Wait wait_;
};

/// What a server has of one log or key.
struct Log {
  std::uint64_t position = 0;
  std::uint64_t end = kNoEnd;
  bool known = true;

  [[nodiscard]] Status Of(std::uint64_t version) const {
    if (!known) return Status::kUnknownLog;
    if (version > end) return Status::kLost;
    return version <= position ? Status::kVisible : Status::kNotYet;
  }
};

/// What can be checked: logs in order, and things that have none.
struct Server {
  std::map<std::string, Log> logs;
  std::map<Dependency, Status> things;
  int incarnation = 1;
  bool away = false;

  Observation Observe(const std::set<Dependency>& wanted) {
    Observation shown;
    shown.server = "server-" + std::to_string(incarnation);
    for (const Dependency& each : wanted) {
      const auto thing = things.find(each);
      const Status status = thing == things.end() ? Status::kNotYet : thing->second;
      if (const auto* promise = std::get_if<Promise>(&each)) {
        shown.promises[*promise] = status;
        continue;
      }
      const auto& write = std::get<WriteId>(each);
      const auto* version = std::get_if<std::uint64_t>(&write.version);
      shown.statuses[write] = version == nullptr ? status : logs[write.key].Of(*version);
    }
    return shown;
  }
};

using Somebody = std::shared_ptr<Someone>;

/// The plain scan.
struct Plain {
  std::vector<Somebody> waiting;

  void Check(Server& server) {
    std::set<Dependency> wanted;
    for (const auto& each : waiting) wanted.merge(each->Wanted("posts"));
    for (const auto& each : waiting) {
      if (wanted.empty()) break;
      if (server.away) {
        each->Unreached("posts", "away");
      } else {
        each->Take("posts", server.Observe(wanted));
      }
    }
    waiting.erase(std::remove_if(waiting.begin(), waiting.end(), [](const auto& each) { return !each->Waits(); }),
                  waiting.end());
  }
};

/// The library's own.
struct Ordered {
  Subscribers subscribers;
  std::vector<std::size_t> sizes;  ///< All that each check was for.
  std::size_t most_places = 0;

  void Join(const Somebody& someone) { subscribers.Join(someone, someone->Wanted("posts"), 0); }

  void CheckOnce(Server& server, double now_s) {
    const auto wanted = subscribers.Asks();
    sizes.push_back(wanted.size());
    std::set<std::pair<std::string, const Dependency*>> places;
    for (const Dependency& each : wanted) {
      const auto* write = std::get_if<WriteId>(&each);
      const bool ordered = write != nullptr && std::holds_alternative<std::uint64_t>(write->version);
      places.emplace(ordered ? write->key : "", ordered ? nullptr : &each);
    }
    most_places = std::max(most_places, places.size());
    if (server.away) {
      const auto told = subscribers.Failed();
      for (const auto& each : told) Subscribers::Of(each).Unreached("posts", "away");
      subscribers.Settle(told, "posts");
      return;
    }
    const auto told = subscribers.Shown(server.Observe(wanted), now_s);
    std::vector<Subscribers::One> all;
    for (const auto& [one, left_s] : told.whom) {
      if (left_s) Subscribers::Of(one).WaitedOn(*left_s);
      Subscribers::Of(one).Take("posts", told.observation);
      all.push_back(one);
    }
    subscribers.Settle(all, "posts");
  }

  /// All checks that follow each other at once.
  void Check(Server& server, double now_s = 1) {
    for (int checks = 0; !subscribers.empty(); ++checks) {
      ASSERT_LT(checks, kMostChecks);
      CheckOnce(server, now_s);
      if (!subscribers.unasked()) break;
    }
  }
};

/// One random program, done by both.
class Program {
 public:
  Program(unsigned seed, int places) : random_(seed) {
    for (int nth = 0; nth < places; ++nth) names_.push_back("log-" + std::to_string(nth));
  }

  void Run(int steps, int joins) {
    for (int nth = 0; nth < steps; ++nth) {
      const auto act = Below(joins + 6);
      if (act < 3) {
        Check();
      } else if (act < 5) {
        Change();
      } else if (act < 6) {
        Leave();
      } else {
        Join();
      }
    }
    while (!waiting_.empty()) Leave();
    EXPECT_TRUE(ordered.subscribers.joined().empty());
    EXPECT_FALSE(ordered.subscribers.promised());
  }

  Ordered ordered;

 private:
  /// The same barrier, in both.
  using Both = std::pair<Somebody, Somebody>;

  int Below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }
  std::uint64_t Until(int bound) { return static_cast<std::uint64_t>(Below(bound)); }
  bool Of100(int chances) { return Below(100) < chances; }
  Promise APromise() {
    const std::string number = std::to_string(Below(40));
    return {"posts", std::string(32 - number.size(), '0') + number, kNoEnd};
  }
  WriteId AThing() { return {"posts", "object", "v" + std::to_string(Below(40)), 500'000}; }
  Dependency One() {
    const int kind = Below(100);
    if (kind < 80) {
      return Write(names_[Until(static_cast<int>(names_.size()))], reached_ + 1 + Until(99), kind < 20);
    }
    if (kind < 90) return APromise();
    return AThing();
  }

  void Join() {
    std::set<Dependency> wanted;
    for (int left = std::max(1, Below(6) - 2); left > 0; --left) wanted.insert(One());
    const auto policy = Below(5) == 0 ? Policy::kReport : Policy::kRaise;
    const Both both{std::make_shared<Someone>(wanted, policy), std::make_shared<Someone>(wanted, policy)};
    waiting_.push_back(both);
    plain_.waiting.push_back(both.first);
    ordered.Join(both.second);
  }

  /// A deadline, or a cancelled wait.
  void Leave() {
    if (waiting_.empty()) return;
    const auto left = waiting_.begin() + Below(static_cast<int>(waiting_.size()));
    auto& plain = plain_.waiting;
    plain.erase(std::remove(plain.begin(), plain.end(), left->first), plain.end());
    ordered.subscribers.Leave(left->second);
    EXPECT_EQ(left->second->Outcomes(), left->first->Outcomes());
    waiting_.erase(left);
  }

  /// Logs go on, end, are unknown for a while or go back; things come to be.
  void Change() {
    std::shuffle(names_.begin(), names_.end(), random_);
    const auto changed = 1 + Until(std::min(static_cast<int>(names_.size()), 6));
    for (std::uint64_t nth = 0; nth < changed; ++nth) {
      Log& each = server_.logs[names_[nth]];
      const int kind = Below(100);
      if (kind < 80) {
        each.position = std::min(each.position + std::vector<std::uint64_t>{1, 1, 5, 40}[Until(4)], each.end);
      } else if (kind < 85) {
        each.end = std::max(each.position, reached_) + Until(30);
      } else if (kind < 90) {
        each.known = true;
      } else {  // What was shown may be gone.
        ++server_.incarnation;
        each.position /= 1 + Until(2);
        each.end = Of100(50) ? each.position : kNoEnd;
        each.known = Of100(70);
      }
    }
    for (const auto& [name, log] : server_.logs) reached_ = std::max(reached_, log.position);
    Status& record = server_.things.try_emplace(APromise(), Status::kNotYet).first->second;
    if (record != Status::kVisible) {  // The first record stays.
      record = std::vector<Status>{Status::kVisible, Status::kNotYet, Status::kAbandoned}[Until(3)];
    }
    server_.things[AThing()] = Status::kVisible;
    server_.away = Of100(5);
  }

  void Check() {
    plain_.Check(server_);
    ordered.Check(server_);
    for (const auto& [plain, own] : waiting_) {
      EXPECT_EQ(own->Waits(), plain->Waits());
      if (!plain->Waits()) {
        EXPECT_EQ(own->Outcomes(), plain->Outcomes());
      }
    }
    waiting_.erase(
        std::remove_if(waiting_.begin(), waiting_.end(), [](const Both& both) { return !both.first->Waits(); }),
        waiting_.end());
  }

  std::mt19937 random_;
  std::vector<std::string> names_;
  Server server_;
  Plain plain_;
  std::vector<Both> waiting_;
  std::uint64_t reached_ = 0;
};

// Whatever joins, leaves, comes and goes: waits end when they end by the plain scan.
TEST(Waiters, AreNotMissed) {
  struct Size {
    int places;
    int joins;
    int steps;
  };
  for (const Size& size : {Size{1, 6, 400}, Size{1, 20, 400}, Size{3, 6, 400}, Size{200, 6, 200}}) {
    for (unsigned seed = 0; seed < 4 && !testing::Test::HasFailure(); ++seed) {
      Program program(seed, size.places);
      program.Run(size.steps, size.joins);
      EXPECT_LE(program.ordered.most_places, Subscribers::kMostPlaces) << "of " << size.places << ", seed " << seed;
    }
  }
}

std::vector<Somebody> Everyone(Ordered& waiting, std::uint64_t first, std::uint64_t count) {
  std::vector<Somebody> everyone;
  for (std::uint64_t nth = 0; nth < count; ++nth) {
    everyone.push_back(std::make_shared<Someone>(std::set<Dependency>{Write("log", first + nth)}));
    waiting.Join(everyone.back());
  }
  return everyone;
}

std::uint64_t Met(const std::vector<Somebody>& everyone) {
  const auto met = std::count_if(everyone.begin(), everyone.end(), [](const auto& each) { return !each->Waits(); });
  return static_cast<std::uint64_t>(met);
}

// All of a log that is shown is met at once, and what then waits is not asked for whole.
TEST(ACheck, AsksForTheFirstAndTheLast) {
  constexpr std::size_t kFew = Subscribers::kFew;
  using Sizes = std::vector<std::size_t>;
  Ordered waiting;
  Server server;
  const auto everyone = Everyone(waiting, 1, 200);
  waiting.Check(server);  // All of these are new.
  EXPECT_EQ(waiting.sizes, Sizes{200});
  const std::vector<std::pair<std::uint64_t, Sizes>> seen{{kFew, {kFew + 1, 4 * kFew}},  // More may be met.
                                                          {kFew, {kFew + 1}},
                                                          {100, {kFew + 1, 4 * kFew, 16 * kFew}},
                                                          {100, {kFew + 1}},
                                                          {200, {kFew + 1}}};
  for (const auto& [position, sizes] : seen) {
    server.logs["log"].position = position;
    waiting.sizes.clear();
    waiting.Check(server);
    EXPECT_EQ(waiting.sizes, sizes);
    EXPECT_EQ(Met(everyone), position);
  }
}

TEST(ACheck, KnowsTheOrderOfTheLargestVersions) {
  constexpr std::uint64_t kHalf = std::numeric_limits<std::int64_t>::max();
  Ordered waiting;
  Server server;
  server.logs["log"].end = std::numeric_limits<std::uint64_t>::max();
  const auto everyone = Everyone(waiting, kHalf - 19, 40);
  for (const std::uint64_t position : {0U, 10U, 30U, 40U}) {
    server.logs["log"].position = kHalf - 20 + position;
    waiting.Check(server);
    EXPECT_EQ(Met(everyone), position);
  }
}

// By the next check: when the one of which it was not told left it waiting.
TEST(ACheck, TellsWhoWasNotToldWhenItWaited) {
  Ordered waiting;
  Server server;
  const auto everyone = Everyone(waiting, 1, 20);
  for (int now_s = 1; now_s <= 3; ++now_s) {
    server.logs["log"].position = now_s < 3 ? 0 : 20;
    waiting.CheckOnce(server, now_s);
  }
  EXPECT_FALSE(everyone.front()->left_s);
  EXPECT_FALSE(everyone.back()->left_s);
  EXPECT_EQ(everyone[11]->left_s, 2);
}

}  // namespace
}  // namespace antipode
