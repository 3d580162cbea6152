// Receipts: which publications were routed in this region, as one process saw it. No I/O.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "antipode/clock.h"
#include "antipode/outcomes.h"
#include "antipode/shim.h"
#include "rabbitmq/ordered_map.h"

namespace antipode::rabbitmq {

/// A publication is visible when it and all before it of the same publisher were seen here. What this process cannot
/// have seen, because it did not listen yet or no longer remembers, it says so. Thread-safe, bounded.
class Ledger {
 public:
  /// What is said of a dependency, and why, for people.
  struct Said {
    Status status;
    std::string cause;
  };

  /// Begins to listen now. After `gap_age_s` a publication that may have been missed counts as missed.
  Ledger(double gap_age_s, const Clock& clock);

  /// Listening began anew: what passed before may have been missed.
  void Listening();
  /// A write was routed in this region.
  void See(const WriteId& write);
  /// This process received a write, which is visible here by itself; the publication of the same publisher on which it
  /// depends, `after`, by what was seen alone (0: none).
  void Deliver(const WriteId& write, std::uint64_t after);
  /// A message was routed, or received, that fulfils a promise.
  void Fulfil(const Promise& promise);

  /// What is known of a publication.
  Said Judge(const WriteId& write);
  /// What is known of a promise. That nothing was seen proves nothing: past its expiry it is undecidable.
  Said Judge(const Promise& promise);

  /// How often something changed.
  [[nodiscard]] std::uint64_t Changes() const;
  /// Waits until something has changed since there were so many changes, until woken, or so many seconds.
  void Pause(double timeout_s, Wake& wake, std::uint64_t changes);
  /// Makes whoever waits check again.
  void WakeUp();

 private:
  using Name = std::pair<std::string, std::uint64_t>;

  /// One publisher: all up to `prefix` were seen, and those ahead of a gap.
  struct Publisher {
    std::uint64_t prefix = 0;
    int epoch = 0;
    double gap_since_s = 0;
    bool broken = false;
    std::set<std::uint64_t> ahead;

    void See(std::uint64_t version, double now_s);
  };

  void Noticed(const std::string& key, std::uint64_t version);
  void ForgetFirstPublisher();
  void Changed();
  bool Patient(const Name& name);
  [[nodiscard]] Said JudgeStranger(const std::string& key, bool patient) const;

  const double gap_age_s_;
  const Clock& clock_;
  mutable std::mutex lock_;
  OrderedMap<std::string, Publisher> publishers_;
  OrderedMap<Name, std::uint64_t> delivered_;
  OrderedMap<Name, double> asked_;
  OrderedMap<std::string, bool> fulfilled_;
  std::set<Wake*> waiting_;
  double remembers_from_s_;
  int epoch_ = 0;
  std::uint64_t changes_ = 0;
};

}  // namespace antipode::rabbitmq
