#include "vectors.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

namespace antipode::vectors {

std::vector<Case> Cases(const std::string& folder, const std::string& kind) {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(ANTIPODE_VECTORS) / folder)) {
    if (file.path().extension() == ".json") files.push_back(file.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Case> cases;
  for (const auto& file : files) {
    std::ifstream stream(file);
    const Json loaded = Json::parse(stream);
    const Json found = loaded.value(kind, Json::array());
    for (const Json& vector : found) {
      std::string name = file.stem().string() + "_" + vector.at("name").get<std::string>();
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
