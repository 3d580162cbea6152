#include "verdicts.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "antipode/barrier.h"
#include "antipode/floor.h"
#include "antipode/observer.h"
#include "antipode/scope.h"
#include "antipode/text.h"
#include "barrier_json.h"
#include "scripts.h"
#include "settings_json.h"
#include "virtual_clock.h"

namespace antipode::agent {
namespace {

/// A folder for records.
class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "antipode-dry-run-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category());
    path_ = name;
  }
  ~Folder() {
    std::error_code lost;
    std::filesystem::remove_all(path_, lost);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A dry run into a folder, as long as it lives.
class Recorded {
 public:
  Recorded(const Json& given, const Folder& folder) : before_(CurrentSettings()) {
    Settings settings = before_;
    settings.mode = Mode::kDryRun;
    settings.dry_run_dir = folder.path().string();
    settings.region = std::nullopt;
    settings.egress = std::nullopt;
    Json chosen = Json::object();
    for (const char* name : {"region", "egress", "barriers"}) {
      if (given.contains(name)) chosen[name] = given.at(name);
    }
    Configure(json::SettingsOf(chosen, settings));
  }
  ~Recorded() { Configure(before_); }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

 private:
  Settings before_;
};

/// The steps of a request, at stores that none of them asks.
class Request {
 public:
  explicit Request(const Json& given) {
    const Json found = given.value("stores", Json::array());
    for (const Json& each : found) {
      auto store = StoreOf(each, clock_);
      stores_[store->datastore()] = store;
    }
  }
  ~Request() {
    for (const std::string& each : connections_) RecordUncommitted("", &each, false);
    for (const auto& [name, store] : stores_) store->Close();
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  void Take(const Json& step) {
    const std::string op = step.at("op");
    if (op == "write") {
      RecordWrite(json::WriteOf(step.at("write")));
    } else if (op == "barrier") {
      BarrierOptions options = json::BarrierOptionsOf(step.value("options", Json::object()));
      options.timeout = Seconds(1);
      Barrier(options);
    } else if (op == "check") {
      Check();
    } else if (op == "wrote" || op == "over") {
      RecordUncommitted(step.at("datastore"), Who(step), op == "wrote");
    } else if (op == "stop") {
      Stop();
    } else if (op == "read") {
      const std::string block = step.value("block", "");
      std::optional<BarriersGuard> chosen;
      if (!block.empty()) chosen.emplace(block == "auto" ? ReadBarriers::kAuto : ReadBarriers::kExplicit);
      Floor::Current(*stores_.at(step.at("datastore")), /*reads=*/true, Who(step));
    } else {
      throw std::out_of_range("no step " + op);
    }
  }

 private:
  /// The connection that a step is made through; null for one without a name.
  const void* Who(const Json& step) {
    const std::string name = step.value("connection", "");
    return name.empty() ? nullptr : &*connections_.insert(name).first;
  }

  VirtualClock clock_;
  std::set<std::string> connections_;
  std::map<std::string, std::shared_ptr<FakeStore>> stores_;
};

/// The guards in the text with which a request is sent.
Json GuardsOf(const Scope& scope) {
  Json guards = Json::array();
  const std::string sent = scope.text();
  for (const std::string_view item : text::Split(sent, '~')) {
    if (text::StartsWith(item, "0g")) guards.push_back(std::string(item));
  }
  return guards;
}

std::vector<Json> RecordsIn(const Folder& folder) {
  std::vector<Json> records;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    std::ifstream lines(file.path());
    for (std::string line; std::getline(lines, line);) records.push_back(Json::parse(line));
  }
  return records;
}

Json ReadsOf(const std::vector<Json>& records) {
  Json reads = Json::array();
  for (const Json& record : records) {
    if (record.at("kind") != "read") continue;
    Json writes = Json::array();
    for (const Json& each : record.at("writes")) {
      writes.push_back({each.at("datastore"), each.at("log"), each.at("version")});
    }
    reads.push_back({{"verdict", record.at("verdict")}, {"writes", writes}});
  }
  return reads;
}

/// Of reads that miss what one expects them to see: what lints say of them, each once.
Json LintsOf(const std::vector<Json>& records) {
  std::set<Json> lints;
  for (const Json& record : records) {
    if (record.at("kind") != "lint") continue;
    const std::string lint = record.at("lint");
    if (lint != "read-before-commit" && lint != "unscoped-read") continue;
    lints.insert(Json::array({lint, record.at("datastore")}));
  }
  return Json(lints);
}

using Counted = std::map<std::pair<std::string, std::string>, std::uint64_t>;

/// What misses what one expects of it, as it was counted since.
Json CountedSince(const Counted& before) {
  Json counted = Json::array();
  for (const auto& [metric, count] : Metrics()) {
    const auto& [name, datastore] = metric;
    if (name != "read_before_commit" && name != "sent_before_commit" && name != "unscoped_read") continue;
    const auto was = before.find(metric);
    const std::uint64_t more = count - (was == before.end() ? 0 : was->second);
    if (more > 0) counted.push_back(Json::array({name, datastore, more}));
  }
  return counted;
}

}  // namespace

Json JudgeReads(const Json& given) {
  const Folder folder;
  const Counted before = Metrics();
  Json value = Json::object();
  value["guards"] = Json::array();
  {
    const Recorded recorded(given, folder);
    Request request(given);
    std::optional<ScopeGuard> scope;
    if (given.value("scope", true)) {
      scope.emplace(given.contains("lineage") ? json::LineageOf(given.at("lineage")) : Lineage());
    }
    for (const Json& step : given.at("steps")) request.Take(step);
    if (scope) value["guards"] = GuardsOf(*scope->scope());
  }
  const std::vector<Json> records = RecordsIn(folder);
  value["reads"] = ReadsOf(records);
  value["lints"] = LintsOf(records);
  value["counted"] = CountedSince(before);
  return value;
}

}  // namespace antipode::agent
