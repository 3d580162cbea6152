// What a store and its client bring to random sessions.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "antipode/barrier.h"
#include "antipode/scope.h"

namespace antipode::programs {

/// What every bench calls its store.
inline constexpr const char* kDatastore = "posts";
/// How often a step of everyday is drawn, beside one of the rare ones.
inline constexpr int kOften = 8;

using Random = std::mt19937;

inline std::size_t Below(Random& choose, std::size_t end) {
  return std::uniform_int_distribution<std::size_t>(0, end - 1)(choose);
}
inline bool Chance(Random& choose, double of) { return std::uniform_real_distribution<>(0, 1)(choose) < of; }

/// What no session may show: `lost`, `early` or `broken`.
class Fault final : public std::runtime_error {
 public:
  Fault(std::string kind, const std::string& words) : std::runtime_error(words), kind_(std::move(kind)) {}
  [[nodiscard]] const std::string& kind() const { return kind_; }

 private:
  std::string kind_;
};

/// What an application throws in the middle of its work.
struct Thrown final : std::runtime_error {
  Thrown() : std::runtime_error("the application threw") {}
};

/// A client of one store, two servers, and the truth about them. What a step throws of the library's is part of it.
class Bench {
 public:
  struct Step {
    std::string name;
    int weight;
    std::function<void(Random&)> act;
  };

  Bench() = default;
  virtual ~Bench() = default;
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  /// Begins a session: connects.
  virtual void Open(Random& choose) = 0;
  /// Ends it, whatever is open.
  virtual void Close() = 0;
  /// Ends what a request left open, as a pool does that takes a connection back.
  virtual void Settle() = 0;
  /// What everybody sees at the primary, and at the replica.
  virtual std::string Committed() = 0;
  virtual std::string Shown() = 0;
  /// A write of the library's own connections, which a child process makes as well.
  virtual void WriteByShim(const std::string& value) = 0;

  std::vector<std::string> trace;  ///< What the session did, for people.

 protected:
  void Add(std::string name, int weight, std::function<void(Random&)> act) {
    steps_.push_back({std::move(name), weight, std::move(act)});
  }
  /// A text that no value has.
  std::string Number() { return std::to_string(++number_); }
  void Said(const std::string& words) { trace.push_back(words); }

 private:
  std::vector<Step> steps_;
  int number_ = 0;
};

/// Makes a bench of the servers that the words name.
using Maker = std::unique_ptr<Bench> (*)(const std::vector<std::string>& words);
std::unique_ptr<Bench> MakeMongoDb(const std::vector<std::string>& words);
std::unique_ptr<Bench> MakeMySql(const std::vector<std::string>& words);
std::unique_ptr<Bench> MakeRabbitMq(const std::vector<std::string>& words);
std::unique_ptr<Bench> MakeRedis(const std::vector<std::string>& words);

/// A barrier at the next read, which has no time to wait for a replica that is held.
inline void BarrierAtRead(double timeout_s) {
  BarrierOptions options;
  options.timeout = Seconds(timeout_s);
  options.at = At::kRead;
  Barrier(options);
}

/// How long a read at the replica, whose replication is held, waits: some waits end in the middle of what is asked.
inline double HeldS(Random& choose) {
  constexpr double kShortestS = 0.0005;
  constexpr double kLongestS = 0.05;
  return Chance(choose, 0.5) ? kLongestS : std::uniform_real_distribution<>(kShortestS, kLongestS / 10)(choose);
}

}  // namespace antipode::programs
