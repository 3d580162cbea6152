// A dry run for one test, and what it wrote.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "json.h"
#include "settings_guard.h"

namespace antipode {

/// A dry run into a folder of its own, as long as it lives.
class Recorded {
 public:
  explicit Recorded(Settings settings = {}) : folder_(MakeFolder()), guard_(Into(folder_, std::move(settings))) {}
  ~Recorded() { std::filesystem::remove_all(folder_); }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  /// The records of a kind, or all of them.
  [[nodiscard]] std::vector<json::Json> Of(const std::string& kind = "") const {
    std::vector<json::Json> found;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      std::ifstream lines(file.path());
      for (std::string line; std::getline(lines, line);) {
        auto record = json::Json::parse(line);
        if (kind.empty() || record.at("kind") == kind) found.push_back(std::move(record));
      }
    }
    return found;
  }

 private:
  static std::string MakeFolder() {
    std::string name = std::filesystem::temp_directory_path() / "antipode-dry-run-XXXXXX";
    return mkdtemp(name.data());
  }
  static Settings Into(const std::string& folder, Settings settings) {
    settings.mode = Mode::kDryRun;
    settings.dry_run_dir = folder;
    return settings;
  }

  std::string folder_;
  SettingsGuard guard_;
};

}  // namespace antipode
