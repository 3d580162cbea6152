#include "vectors.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>

namespace antipode::vectors {

namespace {

namespace fs = std::filesystem;

struct File {
  fs::path path;
  Json content;
};

/// All files of a folder and of those within it.
std::vector<File> Files(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& file : fs::recursive_directory_iterator(folder)) {
    if (file.path().extension() == ".json") paths.push_back(file.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<File> files;
  for (const auto& path : paths) {
    std::ifstream stream(path);
    files.push_back({path, Json::parse(stream)});
  }
  return files;
}

/// The kinds of vectors that a file has.
std::vector<std::string> KindsOf(const File& file) {
  std::vector<std::string> kinds;
  for (const auto& [kind, vectors] : file.content.items()) {
    if (vectors.is_structured()) kinds.push_back(kind);
  }
  return kinds;
}

/// What was asked for, as "level/kind".
std::set<std::string>& Asked() {
  static std::set<std::string> asked;
  return asked;
}

void Add(std::vector<Case>& cases, const std::string& level, const std::string& kind, const File& file) {
  Asked().insert(level + "/" + kind);
  const std::string where = level + "/" + file.path.filename().string() + "/" + kind + ": ";
  for (const Json& vector : file.content.value(kind, Json::array())) {
    const std::string called = vector.is_string() ? vector : vector.at("name");
    std::string name = file.path.stem().string() + "_" + called;
    // GoogleTest wants letters and digits, and no name twice.
    for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    name += "_" + std::to_string(cases.size());
    cases.push_back({name, where + called, kind, file.content.value("store", ""), vector});
  }
}

}  // namespace

fs::path Root() {
  const char* root = std::getenv("ANTIPODE_VECTORS");
  return root == nullptr ? ANTIPODE_VECTORS : root;
}

std::vector<Case> Cases(const std::string& level, const std::string& kind) {
  std::vector<Case> cases;
  for (const File& file : Files(Root() / level)) Add(cases, level, kind, file);
  return cases;
}

std::vector<Case> Cases(const std::string& level) {
  std::vector<Case> cases;
  for (const File& file : Files(Root() / level)) {
    for (const std::string& kind : KindsOf(file)) Add(cases, level, kind, file);
  }
  return cases;
}

std::set<std::string> Unread(const fs::path& root) {
  std::set<std::string> unread;
  for (const File& file : Files(root)) {
    const fs::path within = file.path.lexically_relative(root);
    const std::string level = within.parent_path().string();
    if (level == "schema") continue;
    std::size_t vectors = 0;
    for (const std::string& kind : KindsOf(file)) {
      vectors += file.content.at(kind).size();
      if (Asked().count(level + "/" + kind) == 0) unread.insert(level + "/" + kind);
    }
    if (vectors == 0) unread.insert(within.string());
  }
  return unread;
}

std::string TextOf(const Json& vector) {
  if (vector.contains("text")) return vector.at("text");
  std::string text;
  for (const Json& part : vector.at("build")) {
    for (int times = part.at(1); times > 0; --times) text += part.at(0).get<std::string>();
  }
  return text;
}

Lineage Hourless(const Lineage& lineage) {
  LineageParts parts;
  for (WriteId write : lineage.writes()) {
    write.written_hour = 0;
    parts.writes.push_back(write);
  }
  parts.incomplete.assign(lineage.incomplete().begin(), lineage.incomplete().end());
  parts.promises.assign(lineage.promises().begin(), lineage.promises().end());
  parts.open_branches = lineage.open_branches();
  parts.unknown.assign(lineage.unknown().begin(), lineage.unknown().end());
  return Lineage(parts);
}

}  // namespace antipode::vectors
