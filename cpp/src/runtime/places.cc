#include "runtime/places.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <system_error>

#include "antipode/text.h"
#include "runtime/forks.h"
#include "runtime/settings.h"

namespace antipode {
namespace {

constexpr std::size_t kMost = 10'000;
constexpr const char* kUnknownFile = "cpp";
constexpr const char* kUnknownFunction = "?";
/// Namespaces of this library, the language, frameworks and clients.
constexpr std::array<std::string_view, 13> kLibraries{"antipode", "std",     "__gnu_cxx",    "__cxxabiv1", "boost",
                                                      "folly",    "google",  "grpc",         "grpc_core",  "grpc_impl",
                                                      "mongocxx", "testing", "opentelemetry"};

template <typename Names>
bool IsInAny(const std::string& function, const Names& namespaces) {
  return std::any_of(namespaces.begin(), namespaces.end(), [&](const std::string_view name) {
    return function == name || text::StartsWith(function, std::string(name) + "::");
  });
}

/// This file's own, as the program's debug information has it.
std::string OwnFile(std::string_view name) {
  for (const std::uintptr_t address : CurrentCallStack()) {
    for (const Frame& frame : FramesAt(address)) {
      if (text::EndsWith(frame.file, name)) return frame.file.substr(0, frame.file.size() - name.size());
    }
  }
  return "";
}

std::string Program() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown).string();
}

std::string WorkingDirectory() {
  std::error_code removed;
  const auto here = std::filesystem::current_path(removed);
  return removed ? "" : here.string() + "/";
}

/// Of what all places have met.
std::mutex& TheLock() {
  static auto* lock = [] {
    auto* made = new std::mutex;
    HoldWhileForking(ForkRank::kPlaces, *made);
    return made;
  }();
  return *lock;
}

}  // namespace

Places::Places(std::optional<std::set<std::string>> packages)
    : packages_(std::move(packages)),
      here_(WorkingDirectory()),
      program_(Program()),
      source_(OwnFile("src/runtime/places.cc")) {}

Place Places::Of(const CallStack& stack) {
  const std::lock_guard guard(TheLock());
  Place outermost{kUnknownFile, 0, kUnknownFunction};
  bool installed = true;
  for (const std::uintptr_t address : stack) {
    for (const Met& met : At(address)) {
      if (met.own) return met.place;
      if (met.installed && !installed) continue;
      outermost = met.place;
      installed = met.installed;
    }
  }
  return outermost;
}

const std::vector<Places::Met>& Places::At(std::uintptr_t address) {
  const auto known = met_.find(address);
  if (known != met_.end()) return known->second;
  if (met_.size() >= kMost) met_.clear();
  std::vector<Met> found;
  for (const Frame& frame : FramesAt(address)) {
    found.push_back({PlaceOf(frame), IsOwn(frame), IsInstalled(frame.object)});
  }
  return met_[address] = std::move(found);
}

bool Places::IsOwn(const Frame& frame) const {
  if (packages_ && IsInAny(frame.function, *packages_)) return true;
  if (IsInstalled(frame.file)) return false;
  if (IsInstalled(frame.object) && frame.object != program_) return false;
  // A program without symbols has offsets alone.
  if (frame.file.empty() && frame.function.empty()) return !frame.object.empty() && !frame.library;
  if (frame.file.empty() || source_.empty()) return !frame.function.empty() && !IsInAny(frame.function, kLibraries);
  // What lies next to the library's source, such as its tests, is as good as anybody's. A build with relative paths
  // does not say whose folder `src` it is.
  const std::string_view file = frame.file;
  const bool within = text::StartsWith(file, source_ + "src/") || text::StartsWith(file, source_ + "include/");
  if (within && (source_.front() == '/' || IsInAny(frame.function, kLibraries))) return false;
  const std::filesystem::path path(frame.file);
  const bool header = path.extension() == ".h" && path.parent_path().filename() == "antipode";
  return !header && (text::StartsWith(file, source_) || !IsInAny(frame.function, kLibraries));
}

Place Places::PlaceOf(const Frame& frame) const {
  Place place{frame.file, frame.line, frame.function.empty() ? frame.offset : frame.function};
  if (!here_.empty() && text::StartsWith(place.file, here_)) place.file.erase(0, here_.size());
  if (place.file.empty()) place.file = std::filesystem::path(frame.object).filename().string();
  if (place.file.empty()) place.file = kUnknownFile;
  if (place.function.empty()) place.function = kUnknownFunction;
  return place;
}

std::string CallSite() {
  static auto& places = *new Places(SettingsInForce()->app_packages);
  const Place place = places.Of(CurrentCallStack());
  const std::string file = place.line == 0 ? place.file : place.file + ":" + std::to_string(place.line);
  return place.function + " (" + file + ")";
}

}  // namespace antipode
