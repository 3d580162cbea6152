// A shim that somebody writes for their own store, from the installed
// headers alone: a map with one log. Exits with 0 where its reads wait,
// by a barrier that was called and by themselves, and lineages come
// back as they were stored.
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "antipode/barrier.h"
#include "antipode/floor.h"
#include "antipode/observer.h"
#include "antipode/scope.h"
#include "antipode/shim.h"
#include "antipode/stored.h"

namespace {

using antipode::Lineage;
using antipode::Status;
using antipode::WriteId;

/// A primary and its replica, which shows what was written up to
/// `shown`.
class MapShim final : public antipode::Store {
 public:
  explicit MapShim(const std::string& datastore)
      : Store(datastore, antipode::ReadsFrom::kReplica) {}

  void Write(const std::string& key, const std::string& value) {
    const Lineage base = antipode::Current();
    const std::lock_guard guard(lock_);
    values_[key] = {value, antipode::StoredText(base)};
    antipode::RecordWrite(
        {datastore(), "log", ++written_, clock().Hour()});
  }
  std::pair<std::string, Lineage> Read(const std::string& key) {
    if (const auto floor = antipode::Floor::Current(*this)) {
      floor->Hold([&](double) { return Shown(floor->writes()); }, this);
    }
    const std::lock_guard guard(lock_);
    auto& [value, text] = values_[key];
    return {value, antipode::StoredLineage(datastore(), text)};
  }
  void CatchUp() {
    const std::lock_guard guard(lock_);
    shown_ = written_;
  }

  [[nodiscard]] bool Floors() const override { return true; }
  std::unique_ptr<antipode::Endpoint> OpenEndpoint(double) override {
    return std::make_unique<Connection>(*this);
  }

 private:
  class Connection final : public antipode::Endpoint {
   public:
    explicit Connection(MapShim& shim) : shim_(shim) {}
    antipode::Observation Observe(const std::set<WriteId>& writes,
                                  double) override {
      return shim_.Shown(writes);
    }

   private:
    MapShim& shim_;
  };

  antipode::Observation Shown(const std::set<WriteId>& writes) {
    antipode::Observation shown;
    shown.server = "replica";
    const std::lock_guard guard(lock_);
    for (const WriteId& each : writes) {
      const bool visible =
          std::get<std::uint64_t>(each.version) <= shown_;
      shown.statuses[each] =
          visible ? Status::kVisible : Status::kNotYet;
    }
    return shown;
  }

  std::mutex lock_;
  std::map<std::string, std::pair<std::string, std::string>> values_;
  std::uint64_t written_ = 0;
  std::uint64_t shown_ = 0;
};

antipode::BarrierOptions AtRead(std::chrono::milliseconds timeout) {
  antipode::BarrierOptions options;
  options.timeout = timeout;
  options.at = antipode::At::kRead;
  return options;
}

bool HoldsReads(MapShim& shim) {
  const antipode::ScopeGuard request;
  antipode::Append({"users", "log", std::uint64_t{7}, 400'000});
  shim.Write("1", "hello");
  antipode::Barrier(AtRead(std::chrono::milliseconds(20)));
  try {
    shim.Read("1");
    return false;
  } catch (const antipode::BarrierTimeout&) {
  }
  shim.CatchUp();
  antipode::Barrier(AtRead(std::chrono::seconds(5)));
  const auto [value, lineage] = shim.Read("1");
  return value == "hello" && lineage.writes().size() == 1 &&
         lineage.writes()[0].datastore == "users";
}

bool WaitsByItself(MapShim& shim) {
  antipode::Settings settings = antipode::CurrentSettings();
  settings.barriers = antipode::ReadBarriers::kAuto;
  settings.auto_timeout = std::chrono::milliseconds(20);
  antipode::Configure(settings);
  const antipode::ScopeGuard request;
  shim.Write("2", "again");
  shim.Read("2");
  return antipode::Metrics()[{"served_stale", "map"}] == 1;
}

}  // namespace

int main() {
  const auto shim = std::make_shared<MapShim>("map");
  antipode::Register(shim);
  const bool works = HoldsReads(*shim) && WaitsByItself(*shim);
  shim->Close();
  return works ? 0 : 1;
}
