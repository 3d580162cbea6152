#include "dry_run/records.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "dry_run/json.h"
#include "runtime/observers.h"
#include "runtime/random_hex.h"

namespace antipode::dry_run {
namespace {

constexpr int kVersion = 1;
constexpr std::size_t kProcessDigits = 12;
constexpr std::size_t kFileDigits = 6;
constexpr mode_t kReadable = 0666;

/// What OpenTelemetry calls this service; else the program's name.
std::string Service() {
  const char* name = std::getenv("OTEL_SERVICE_NAME");
  if (name != nullptr && *name != '\0') return name;
  std::error_code unknown;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  return unknown || program.filename().empty() ? "cpp" : program.filename().string();
}

std::string Moment() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts)};
}

std::string UnixSeconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  char text[48];
  std::snprintf(text, sizeof text, "%lld.%06lld", static_cast<long long>(us / 1'000'000),
                static_cast<long long>(us % 1'000'000));
  return text;
}

std::system_error Failed() { return {errno, std::generic_category()}; }

}  // namespace

Records::Records(const std::string& directory, std::optional<std::string> region) : region_(std::move(region)) {
  std::error_code unknown;
  const auto absolute = std::filesystem::absolute(directory, unknown);
  directory_ = unknown ? directory : absolute.string();
}

Records::~Records() { Close(); }

int Records::Put(std::string_view kind, const std::string& about) {
  std::string failure;
  {
    const std::lock_guard guard(lock_);
    if (over_) return kUnwritten;
    try {
      if (file_ < 0 || pid_ != getpid()) Open();
      if (Write(kind, about)) return next_ - 1;
      failure = "a line was written in part";
    } catch (const std::system_error& error) {
      failure = error.what();
    }
    over_ = true;
  }
  Count("dry_run_unwritten");
  WarnOnce("dry_run_unwritten", "", "", "no more records of the dry run in " + directory_ + ": " + failure);
  return kUnwritten;
}

void Records::Open() {
  if (file_ >= 0) close(file_);  // That of the parent process.
  std::filesystem::create_directories(directory_);
  pid_ = getpid();
  process_ = RandomHex(kProcessDigits);
  next_ = 0;
  const std::string name =
      directory_ + "/" + Moment() + "-" + std::to_string(pid_) + "-" + RandomHex(kFileDigits) + ".jsonl";
  file_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, kReadable);
  if (file_ < 0) throw Failed();
  Write("process", Facts());
}

std::string Records::Facts() const {
  return R"("service":)" + json::Text(Service()) + R"(,"region":)" + json::TextOrNull(region_) + R"(,"pid":)" +
         std::to_string(pid_) + R"(,"language":"cpp","language_version":)" + json::Text(__VERSION__);
}

bool Records::Write(std::string_view kind, const std::string& about) {
  const std::string line = R"({"v":)" + std::to_string(kVersion) + R"(,"kind":")" + std::string(kind) + R"(","t":)" +
                           UnixSeconds() + R"(,"process":")" + process_ + R"(","n":)" + std::to_string(next_) + "," +
                           about + "}\n";
  const ssize_t written = write(file_, line.data(), line.size());
  if (written < 0) throw Failed();
  ++next_;
  return static_cast<std::size_t>(written) == line.size();
}

void Records::Close() {
  const std::lock_guard guard(lock_);
  over_ = true;
  if (file_ >= 0) close(file_);
  file_ = -1;
}

}  // namespace antipode::dry_run
