#include "vectors.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

namespace antipode::vectors {

namespace {

struct File {
  std::string stem;
  Json vectors;
};

/// All files of a folder.
std::vector<File> Files(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(ANTIPODE_VECTORS) / folder)) {
    if (file.path().extension() == ".json") paths.push_back(file.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<File> files;
  for (const auto& path : paths) {
    std::ifstream stream(path);
    files.push_back({path.stem().string(), Json::parse(stream)});
  }
  return files;
}

/// What all files of a folder have under `kind`.
std::vector<File> Files(const std::string& folder, const std::string& kind) {
  std::vector<File> files = Files(folder);
  for (File& file : files) file.vectors = Json(file.vectors.value(kind, Json::array()));
  return files;
}

}  // namespace

std::set<std::string> Kinds(const std::string& folder) {
  std::set<std::string> kinds;
  for (const File& file : Files(folder)) {
    for (const auto& [kind, vectors] : file.vectors.items()) {
      if (vectors.is_array()) kinds.insert(kind);
    }
  }
  return kinds;
}

std::vector<Json> Entries(const std::string& folder, const std::string& kind) {
  std::vector<Json> entries;
  for (const File& file : Files(folder, kind)) entries.insert(entries.end(), file.vectors.begin(), file.vectors.end());
  return entries;
}

std::vector<Case> Cases(const std::string& folder, const std::string& kind) {
  std::vector<Case> cases;
  for (const File& file : Files(folder, kind)) {
    for (const Json& vector : file.vectors) {
      std::string name = file.stem + "_" + vector.at("name").get<std::string>();
      // GoogleTest wants letters and digits, and no name twice.
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      cases.push_back({name + "_" + std::to_string(cases.size()), vector});
    }
  }
  return cases;
}

std::string TextOf(const Json& vector) {
  if (vector.contains("text")) return vector.at("text");
  std::string text;
  for (const Json& part : vector.at("build")) {
    for (int times = part.at(1); times > 0; --times) text += part.at(0).get<std::string>();
  }
  return text;
}

}  // namespace antipode::vectors
