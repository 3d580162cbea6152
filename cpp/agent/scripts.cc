#include "scripts.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <vector>

#include "antipode/observer.h"
#include "antipode/scope.h"
#include "barrier/automatic.h"
#include "barrier/call.h"
#include "barrier/floor.h"
#include "barrier/future_call.h"
#include "barrier/registry.h"
#include "barrier_json.h"
#include "settings_json.h"
#include "virtual_clock.h"

namespace antipode::agent {
namespace {

/// A barrier on a virtual clock: what the ways to call one do, without blocking.
class VirtualBarrier {
 public:
  VirtualBarrier(VirtualClock& clock, const Json& found)
      : clock_(clock), check_(found.value("check", false)), refresh_(found.value("refresh", true)) {
    clock.At(found.at("at_s"), [this, found] { Begin(found); });
    if (found.contains("cancel_at_s")) clock.At(found.at("cancel_at_s"), [this] { Cancel(); });
  }

  [[nodiscard]] Json Ended() const {
    Json ended = result_ ? json::Of(*result_) : Json{{"outcomes", Json::array()}, {"incomplete", Json::array()}};
    if (!result_) ended["ok"] = ended["eta_s"] = nullptr;
    ended["code"] = code_.empty() ? Json() : Json(code_);
    ended["finished_s"] = finished_s_ ? Json(*finished_s_) : Json();
    return ended;
  }

 private:
  void Begin(const Json& found) {
    try {
      BarrierOptions options = json::BarrierOptionsOf(found.value("options", Json::object()));
      options.timeout = Seconds(found.at("timeout_s").get<double>());
      const Json& lineage = found.at("lineage");
      if (lineage.is_object()) {
        options.lineage = json::LineageOf(lineage);
      } else if (lineage.is_string()) {
        options.lineage = ReceivedNow(lineage.get<std::string>(), options.mode);
      }
      if (check_) options.raise_unmet = false;
      const Purpose purpose = check_ ? Purpose::kCheck : Purpose::kBarrier;
      if (!refresh_) {
        Call call(options, clock_, purpose);
        call.MakeWaiter([] {})->Recall();
        End(call.Conclude());
        return;
      }
      call_ = std::make_shared<FutureCall>(options, clock_, purpose,
                                           [this](const FutureCall::Ending& ending) { End(ending); });
      call_->Begin(clock_);
    } catch (const AntipodeError&) {
      End(std::current_exception());
    }
  }

  /// What a text says, as of the virtual moment.
  [[nodiscard]] Lineage ReceivedNow(const std::string& text, std::optional<Mode> mode) {
    if (mode.value_or(CurrentSettings().mode) == Mode::kDryRun) return json::Received(text, mode);
    const double latest_s = clock_.UnixSeconds() + CurrentSettings().max_promise.count();
    return Lineage::Deserialize(text).Received(clock_.Hour(), static_cast<std::uint64_t>(latest_s));
  }

  void Cancel() {
    if (finished_s_) return;
    code_ = "cancelled";
    finished_s_ = clock_.Now();
    if (call_) call_->Cancel();
  }

  void End(const FutureCall::Ending& ending) {
    finished_s_ = clock_.Now();
    if (const auto* result = std::get_if<BarrierResult>(&ending)) {
      result_ = *result;
      return;
    }
    try {
      std::rethrow_exception(std::get<std::exception_ptr>(ending));
    } catch (const UnmetError& error) {
      code_ = error.code();
      result_ = error.result();
    } catch (const AntipodeError& error) {
      code_ = error.code();
    }
  }

  VirtualClock& clock_;
  bool check_;
  bool refresh_;
  std::shared_ptr<FutureCall> call_;
  std::string code_;
  std::optional<double> finished_s_;
  std::optional<BarrierResult> result_;
};

/// How a read is made.
struct ReadOptions {
  bool watched = false;                       ///< The watcher looks for it while it is held back.
  std::optional<std::set<WriteId>> snapshot;  ///< What is known to show in the snapshot that it reads from.
  double proof_s = 0;                         ///< Its connection is pinned: what its server has shown lately is known.
  bool unasked = false;                       ///< The client gives its connection up before anything was asked.
  bool refused = false;                       ///< Its server refuses the read itself, once nothing holds it back.
};

/// A read on a virtual clock, held back where something is demanded.
class VirtualRead final : public Stepper, public std::enable_shared_from_this<VirtualRead> {
 public:
  VirtualRead(VirtualClock& clock, std::shared_ptr<FakeStore> store, std::shared_ptr<FakeStore> connection,
              ReadOptions options)
      : clock_(clock), store_(std::move(store)), connection_(std::move(connection)), options_(std::move(options)) {}

  void Begin() {
    const std::uint64_t served = ServedSoFar();
    Start();
    served_ = ServedSoFar() > served;
  }

  void Start() {
    Guarded([this] { floor_ = CurrentFloor(*store_, true, nullptr, stale_); });
    if (!floor_ || Passes()) return Finish();
    if (options_.unasked) {
      clock_.At(clock_.Now() + floor_->PollS(), [read = shared_from_this()] { read->GiveUp(); });
      return;
    }
    held_.emplace(floor_, options_.watched ? registry::SharedWatcher(*store_) : nullptr);
    clock_.Spawn(shared_from_this());
  }

  std::optional<double> Step() override {
    const std::uint64_t served = ServedSoFar();
    double pause_s = kNever;
    // GCC 12 takes what is assigned to an optional in a call that throws for assigned, once it optimises.
    Guarded([&] { pause_s = Looked().value_or(kNever); });
    if (pause_s != kNever) return pause_s;
    held_.reset();
    Finish();
    served_ = served_ || ServedSoFar() > served;
    return std::nullopt;
  }
  void Pause(double) override {}
  [[nodiscard]] bool Woken() const override { return held_ && held_->hint() && held_->hint()->Given(); }

  [[nodiscard]] Json Answered() const {
    return {{"code", code_.empty() ? Json() : Json(code_)},
            {"outcomes", outcomes_},
            {"served", served_},
            {"looks", connection_->looks()},
            {"finished_s", finished_s_ ? Json(*finished_s_) : Json()}};
  }

 private:
  [[nodiscard]] std::uint64_t ServedSoFar() const {
    const auto counts = Metrics();
    const auto found = counts.find({"served_stale", store_->datastore()});
    return found == counts.end() ? 0 : found->second;
  }

  /// Whether it is over without a check.
  bool Passes() {
    if (!options_.snapshot && !floor_->Proved(connection_->Server(), options_.proof_s)) return false;
    const auto shows = [this](const Floor& floor) {
      if (!options_.snapshot) return true;
      const auto& shown = *options_.snapshot;
      const auto writes = floor.writes();
      return floor.promises().empty() && std::includes(shown.begin(), shown.end(), writes.begin(), writes.end());
    };
    if (shows(*floor_)) {
      floor_->Pass();
    } else {
      Guarded([&] { floor_->FailSnapshot(StaleSnapshot("scripted"), shows); });
    }
    return true;
  }

  /// Nothing was asked until the time was up.
  void GiveUp() {
    Guarded([this] {
      const std::string why = "scripted to be unasked";
      floor_->Expire(Unreachable(why));
      throw Unreachable(why);
    });
    Finish();
  }

  /// The server answers the read, refuses it, or was never sent it.
  void Finish() {
    finished_s_ = clock_.Now();
    if (code_.empty() && options_.refused) code_ = "store";
    if (code_.empty()) stale_->Answered();
  }

  template <typename Does>
  void Guarded(Does does) {
    try {
      does();
    } catch (const UnmetError& error) {
      code_ = error.code();
      outcomes_ = json::Of(error.result()).at("outcomes");
    } catch (const StaleSnapshot& error) {
      code_ = error.code();
    } catch (const std::exception&) {
      code_ = "store";
    }
  }

  std::optional<double> Looked() {
    try {
      return Look();
    } catch (const Unreachable& error) {
      held_->Failed(error);
      throw;
    }
  }

  /// Seconds until the next check; a frozen server takes all the time that there is.
  std::optional<double> Look() {
    if (silent_) throw Unreachable("scripted to be frozen");
    connection_->RaiseIfDown();
    const Observation shown = connection_->LookAt(floor_->writes(), floor_->promises());
    if (!connection_->Frozen()) return held_->Take(shown);
    silent_ = true;
    return held_->PollS();
  }

  VirtualClock& clock_;
  std::shared_ptr<FakeStore> store_;
  std::shared_ptr<FakeStore> connection_;
  ReadOptions options_;
  bool silent_ = false;
  bool served_ = false;
  std::shared_ptr<StaleRead> stale_ = std::make_shared<StaleRead>();
  std::shared_ptr<ReadFloor> floor_;
  std::optional<HeldRead> held_;
  std::string code_;
  Json outcomes_ = Json::array();
  std::optional<double> finished_s_;
};

Status RecordOf(const std::string& record) {
  if (record == "fulfilled") return Status::kVisible;
  return record == "abandoned" ? Status::kAbandoned : Status::kNotYet;
}

void Script(FakeStore& store, const Json& event) {
  const double at_s = event.at("at_s");
  if (event.contains("log")) {
    store.Advance(event.at("log"), std::stoull(event.at("position").get<std::string>()), at_s);
  } else if (event.contains("status")) {
    store.SetStatus(json::WriteOf(event.at("write")), json::StatusOf(event.at("status")), at_s);
  } else if (event.contains("record")) {
    store.SetRecord(json::PromiseOf(event.at("promise")), RecordOf(event.at("record")), at_s);
  } else if (event.contains("records_server")) {
    store.MoveRecords(event.at("records_server"), at_s);
  } else if (event.contains("server")) {
    store.ReplaceServer(event.at("server"), at_s);
  } else if (event.contains("down_until_s") || event.contains("down")) {
    store.TakeDown(at_s, event.value("down_until_s", kNever));
  } else if (event.contains("broken")) {
    store.BreakDown(at_s);
  } else if (event.contains("frozen")) {
    store.Freeze(at_s);
  } else if (event.contains("eta_s")) {
    store.Estimate(event.at("eta_s"), at_s);
  } else if (event.contains("primary_down")) {
    store.TakePrimaryDown(at_s);
  } else if (event.contains("primary")) {
    store.MovePrimary(json::WriteOf(event.at("primary")), at_s);
  } else {
    throw std::out_of_range("no event of a script: " + event.dump());
  }
}

}  // namespace

std::shared_ptr<FakeStore> StoreOf(const Json& found, VirtualClock& clock) {
  FakeOptions options;
  if (found.value("reads_from", "primary") == "replica") options.reads_from = ReadsFrom::kReplica;
  options.waitable = found.value("waitable", true);
  options.floors = found.value("floors", false);
  options.polls = found.value("polls", true);
  options.pinned = found.value("pinned", false);
  options.push = found.value("push", false);
  options.blocks = found.value("blocks", false);
  options.promises = found.value("promises", false);
  options.unique_logs = found.value("unique_logs", false);
  options.fences = found.value("fences", false);
  const std::string barriers = found.value("barriers", "");
  if (!barriers.empty()) options.barriers = barriers == "auto" ? ReadBarriers::kAuto : ReadBarriers::kExplicit;
  options.fence_s = found.value("fence_s", 0.0);
  auto store = std::make_shared<FakeStore>(found.at("datastore"), clock, options);
  const Json script = found.value("script", Json::array());
  for (const Json& event : script) Script(*store, event);
  Register(store);
  return store;
}

namespace {

/// What this process has for one script, and what it had before.
class Process {
 public:
  explicit Process(const Json& script) : before_(CurrentSettings()) {
    Configure(json::SettingsOf(script.value("settings", Json::object()), before_));
  }
  ~Process() {
    for (const auto& store : stores) store->Close();
    Configure(before_);
  }
  /// Apart from construction: where one cannot be, those before it are closed.
  void Open(const Json& found) {
    for (const Json& each : found) stores.push_back(StoreOf(each, clock));
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  VirtualClock clock;
  std::vector<std::shared_ptr<FakeStore>> stores;

 private:
  Settings before_;
};

std::shared_ptr<VirtualRead> ReadOf(const Json& found, const Json& script, Process& process) {
  const std::string datastore = found.at("datastore");
  std::size_t nth = 0;
  while (process.stores.at(nth)->datastore() != datastore) ++nth;
  auto connection = std::make_shared<FakeStore>(datastore, process.clock, FakeOptions());
  const Json own = script.at("stores")[nth].value("script", Json::array());
  for (const Json& event : found.value("connection", own)) Script(*connection, event);
  ReadOptions options;
  options.watched = found.value("watched", false);
  options.proof_s = found.value("proof_s", 0.0);
  options.unasked = found.value("unasked", false);
  options.refused = found.value("refused", false);
  if (found.contains("snapshot")) {
    options.snapshot.emplace();
    for (const Json& each : found.at("snapshot")) options.snapshot->insert(json::WriteOf(each));
  }
  auto read = std::make_shared<VirtualRead>(process.clock, process.stores[nth], connection, std::move(options));
  process.clock.At(found.at("at_s"), [read, found] {
    const Json wrote = found.value("wrote", Json::array());
    for (const Json& each : wrote) RecordWrite(json::WriteOf(each));
    if (found.contains("merges")) CurrentScope()->Merge(json::LineageOf(found.at("merges")));
    std::optional<BarriersGuard> block;
    if (found.value("barriers", "") == "explicit") block.emplace(ReadBarriers::kExplicit);
    read->Begin();
  });
  return read;
}

}  // namespace

Json RunScript(const Json& script) {
  Process process(script);
  process.Open(script.at("stores"));
  std::optional<ScopeGuard> guard;
  if (script.contains("scope")) guard.emplace(json::LineageOf(script.at("scope")));
  std::optional<Fulfilling> branch;
  if (script.contains("fulfils")) branch.emplace(json::PromiseOf(script.at("fulfils")));
  const auto scope = CurrentScope();
  if (script.contains("stop_at_s")) process.clock.At(script.at("stop_at_s"), [scope] { scope->Stop(); });
  std::vector<std::unique_ptr<VirtualBarrier>> barriers;
  for (const Json& found : script.at("barriers")) {
    barriers.push_back(std::make_unique<VirtualBarrier>(process.clock, found));
  }
  std::vector<std::shared_ptr<VirtualRead>> reads;
  const Json asked = script.value("reads", Json::array());
  for (const Json& found : asked) reads.push_back(ReadOf(found, script, process));
  process.clock.Run();

  Json value{{"barriers", Json::array()}, {"reads", Json::array()},   {"looks", Json::array()},
             {"fences", Json::array()},   {"floors", Json::object()}, {"promises", Json::object()}};
  for (const auto& barrier : barriers) value["barriers"].push_back(barrier->Ended());
  for (const auto& read : reads) value["reads"].push_back(read->Answered());
  value["scope"] = scope ? json::Of(scope->lineage()) : Json();
  for (const auto& store : process.stores) {
    value["looks"].push_back(store->looks());
    value["fences"].push_back(store->fences());
    const auto left = scope ? DemandSet::In(*scope, store->datastore()) : nullptr;
    if (!left) continue;
    const auto floor = std::make_shared<ReadFloor>(store->datastore(), ReadFloor::Demands{left}, nullptr, false,
                                                   nullptr, store->clock());
    Json& writes = value["floors"][store->datastore()] = Json::array();
    Json& promises = value["promises"][store->datastore()] = Json::array();
    for (const WriteId& each : floor->writes()) writes.push_back(json::Of(each));
    for (const Promise& each : floor->promises()) promises.push_back(json::Of(each));
  }
  for (const auto& store : process.stores) {
    store->Close();
    if (store->open_endpoints() != 0) {
      throw std::logic_error("connections to '" + store->datastore() + "' are open");
    }
  }
  return value;
}

}  // namespace antipode::agent
