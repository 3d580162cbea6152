#include "verdicts.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "antipode/barrier.h"
#include "antipode/floor.h"
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
    } else if (op == "read") {
      const std::string block = step.value("block", "");
      std::optional<BarriersGuard> chosen;
      if (!block.empty()) chosen.emplace(block == "auto" ? ReadBarriers::kAuto : ReadBarriers::kExplicit);
      Floor::Current(*stores_.at(step.at("datastore")));
    } else {
      throw std::out_of_range("no step " + op);
    }
  }

 private:
  VirtualClock clock_;
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

Json ReadsIn(const Folder& folder) {
  Json reads = Json::array();
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    std::ifstream lines(file.path());
    for (std::string line; std::getline(lines, line);) {
      const Json record = Json::parse(line);
      if (record.at("kind") != "read") continue;
      Json writes = Json::array();
      for (const Json& each : record.at("writes")) {
        writes.push_back({each.at("datastore"), each.at("log"), each.at("version")});
      }
      reads.push_back({{"verdict", record.at("verdict")}, {"writes", writes}});
    }
  }
  return reads;
}

}  // namespace

Json JudgeReads(const Json& given) {
  const Folder folder;
  Json value = Json::object();
  {
    const Recorded recorded(given, folder);
    Request request(given);
    const ScopeGuard scope(given.contains("lineage") ? json::LineageOf(given.at("lineage")) : Lineage());
    for (const Json& step : given.at("steps")) request.Take(step);
    value["guards"] = GuardsOf(*scope.scope());
  }
  value["reads"] = ReadsIn(folder);
  return value;
}

}  // namespace antipode::agent
