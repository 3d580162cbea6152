// What became of the writes that one read may have missed.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "barrier/watcher.h"

namespace antipode::dry_run {

/// Checks for what one read may have missed, as a barrier does, once that read is over. A check that began after a read
/// and does not show its dependency proves that the read did not show it either. Thread-safe.
class StalenessCheck final : public Subscriber, public std::enable_shared_from_this<StalenessCheck> {
 public:
  /// Learns, once, what became of them: whether the read cannot have shown one, and how many seconds after it all of
  /// them were visible; none where they were not in time.
  using Found = std::function<void(StalenessCheck& check, bool confirmed, std::optional<double> waited_s)>;

  /// Of a read that is about to be made; null where nobody can check for it.
  static std::shared_ptr<StalenessCheck> Of(Store& client, const std::vector<Dependency>& missed, Found found);
  StalenessCheck(Store& client, std::shared_ptr<Watcher> watcher, std::set<Dependency> missed, Found found);

  [[nodiscard]] const std::string& datastore() const { return datastore_; }
  /// Checks from now on, in a thread of the library: the read is over.
  void Begin();
  /// Gives up, with what is known.
  void Stop();
  /// Whether there is nothing to find out any more.
  [[nodiscard]] bool Late() const;
  /// Waits until it checked once or is over, but no longer than so many seconds.
  void AwaitLook(double timeout_s) const { looked_.Wait(timeout_s); }

  std::set<Dependency> Wanted(const std::string& datastore) override;
  void Take(const std::string& datastore, const Observation& observation) override;
  void Unreached(const std::string&, const std::string&) override {}  // The next check may not fail.
  void Failed(const std::string& datastore, const std::string& cause) override;

 private:
  void End(std::optional<double> waited_s);
  [[nodiscard]] double ElapsedS() const;

  std::string datastore_;
  std::shared_ptr<Watcher> watcher_;
  const Clock& clock_;
  Found found_;
  double read_s_;
  Wake looked_;
  mutable std::mutex lock_;
  std::set<Dependency> left_;
  bool confirmed_ = false;
  bool over_ = false;
};

}  // namespace antipode::dry_run
