#include "antipode/settings.h"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>

#include "antipode/errors.h"
#include "antipode/text.h"
#include "runtime/dry_run.h"
#include "runtime/forks.h"
#include "runtime/hosts.h"
#include "runtime/observers.h"
#include "runtime/settings.h"

namespace antipode {
namespace {

constexpr std::size_t kMinLineageBytes = 64;
constexpr std::size_t kMaxLineageBytes = 4'096;

std::string Variable(std::string_view name) {
  std::string variable = "ANTIPODE_";
  for (const char c : name) variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return variable;
}

[[noreturn]] void Refuse(std::string_view name, const std::string& wanted) {
  throw ConfigurationError(std::string(name) + " must be " + wanted + " (Configure, or " + Variable(name) + ")");
}

void Validate(const Settings& settings) {
  const auto span = [](std::string_view name, std::chrono::duration<double> value) {
    if (!(value.count() > 0) || !std::isfinite(value.count())) Refuse(name, "a positive number of seconds");
  };
  span("max_timeout", settings.max_timeout);
  span("horizon", settings.horizon);
  span("max_promise", settings.max_promise);
  span("session_max_age", settings.session_max_age);
  const double budget_s = settings.auto_timeout.count();
  if (!(budget_s >= 0) || !std::isfinite(budget_s)) Refuse("auto_timeout", "a number of seconds, 0 or more");
  if (settings.max_lineage_bytes < kMinLineageBytes || settings.max_lineage_bytes > kMaxLineageBytes) {
    Refuse("max_lineage_bytes", "a number of bytes from 64 to 4096");
  }
  if (settings.max_threads == 0) Refuse("max_threads", "a number of threads, 1 or more");
  if (settings.egress_hosts) {
    for (const std::string& host : *settings.egress_hosts) {
      if (hosts::Refused(host)) {
        Refuse("egress_hosts", "of names or addresses of hosts, without scheme or path, not '" + host + "'");
      }
    }
  }
  for (const auto& [entry, answers] : settings.peers) {
    if (hosts::PeerRefused(entry)) {
      Refuse("peers", "of hosts, without scheme, each with a path or without, not '" + entry + "'");
    }
  }
}

double Number(std::string_view name, const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0') Refuse(name, "a number, not '" + text + "'");
  return number;
}

double Span(std::string_view name, std::string text) {
  const double unit_s = text.back() == 'd' ? 86'400 : text.back() == 'h' ? 3'600 : 1;
  if (text.back() == 'd' || text.back() == 'h' || text.back() == 's') text.pop_back();
  return Number(name, text) * unit_s;
}

template <typename Value>
Value OneOf(std::string_view name, const std::string& text, const std::map<std::string, Value>& words) {
  if (const auto found = words.find(text); found != words.end()) return found->second;
  std::string wanted;
  for (const auto& [word, value] : words) wanted += (wanted.empty() ? "'" : " or '") + word + "'";
  Refuse(name, wanted + ", not '" + text + "'");
}

std::set<std::string> Names(const std::string& text) {
  std::set<std::string> names;
  for (const std::string_view each : text::Split(text, ',')) {
    if (const auto name = text::Trimmed(each); !name.empty()) names.emplace(name);
  }
  return names;
}

Settings FromEnvironment() {
  const std::map<std::string, Policy> policies{{"raise", Policy::kRaise}, {"report", Policy::kReport}};
  Settings settings;
  const auto given = [](std::string_view name, auto take) {
    const char* value = std::getenv(Variable(name).c_str());
    const std::string text(text::Trimmed(value == nullptr ? "" : value));
    if (!text.empty()) take(name, text);
  };
  const auto span = [](std::chrono::duration<double>& setting) {
    return [&setting](std::string_view name, const std::string& text) {
      setting = std::chrono::duration<double>(Span(name, text));
    };
  };
  given("mode", [&](auto name, const auto& text) {
    settings.mode =
        OneOf<Mode>(name, text, {{"enforce", Mode::kEnforce}, {"off", Mode::kOff}, {"dry-run", Mode::kDryRun}});
  });
  given("max_timeout", span(settings.max_timeout));
  given("horizon", span(settings.horizon));
  given("max_promise", span(settings.max_promise));
  given("session_max_age", span(settings.session_max_age));
  given("barriers", [&](auto name, const auto& text) {
    settings.barriers =
        OneOf<ReadBarriers>(name, text, {{"explicit", ReadBarriers::kExplicit}, {"auto", ReadBarriers::kAuto}});
  });
  given("auto_timeout", span(settings.auto_timeout));
  given("on_stale", [&](auto name, const auto& text) {
    if (text == "primary") {
      Refuse(name,
             "'serve' or 'raise' in C++: a client has one connection of yours, and no other to read by. Choose by "
             "RouteReads: guides/cpp/barriers.md");
    }
    settings.on_stale = OneOf<OnStale>(name, text, {{"serve", OnStale::kServe}, {"raise", OnStale::kRaise}});
  });
  given("max_lineage_bytes", [&](auto name, const auto& text) {
    const double bytes = Number(name, text);
    settings.max_lineage_bytes = bytes >= 0 && bytes <= 1e9 ? static_cast<std::size_t>(bytes) : 0;
  });
  given("max_threads", [&](auto name, const auto& text) {
    const double threads = Number(name, text);
    settings.max_threads = threads >= 0 && threads <= 1e6 ? static_cast<std::size_t>(threads) : 0;
  });
  given("on_unknown", [&](auto name, const auto& text) { settings.on_unknown = OneOf(name, text, policies); });
  given("on_incomplete", [&](auto name, const auto& text) { settings.on_incomplete = OneOf(name, text, policies); });
  given("on_unscoped", [&](auto name, const auto& text) { settings.on_unscoped = OneOf(name, text, policies); });
  given("region", [&](auto, const auto& text) { settings.region = text; });
  given("dry_run_dir", [&](auto, const auto& text) { settings.dry_run_dir = text; });
  given("app_packages", [&](auto, const auto& text) { settings.app_packages = Names(text); });
  given("egress", [&](auto, const auto& text) { settings.egress = Names(text); });
  given("egress_hosts", [&](auto, const auto& text) { settings.egress_hosts = Names(text); });
  given("peers", [&](auto name, const auto& text) {
    const std::map<std::string, Answers> words{
        {"auto", Answers::kAuto}, {"always", Answers::kAlways}, {"never", Answers::kNever}};
    for (const std::string& each : Names(text)) {
      const std::size_t sign = each.rfind('=');
      if (sign == std::string::npos) Refuse(name, "like orders.internal=always, not '" + each + "'");
      const std::string answers(text::Trimmed(std::string_view(each).substr(sign + 1)));
      settings.peers[std::string(text::Trimmed(each.substr(0, sign)))] = OneOf(name, answers, words);
    }
  });
  Validate(settings);
  return settings;
}

std::mutex settings_lock;
std::shared_ptr<const Settings>& InForce() {
  static auto* settings = [] {
    HoldWhileForking(ForkRank::kSettings, settings_lock);
    return new std::shared_ptr<const Settings>;
  }();
  return *settings;
}

bool IsDisabled() {
  const char* value = std::getenv("ANTIPODE_DISABLED");
  const std::string word = text::Lower(text::Trimmed(value == nullptr ? "" : value));
  if (!word.empty() && word != "true" && word != "false") {
    WarnOnce("disabled", "", "",
             "ANTIPODE_DISABLED=" + word + " is neither true nor false: the library is not disabled");
  }
  return word == "true";
}

const bool disabled = IsDisabled();

}  // namespace

std::shared_ptr<const Settings> SettingsInForce() {
  {
    const std::lock_guard lock(settings_lock);
    if (const auto& held = InForce()) return held;
    InForce() = std::make_shared<const Settings>(FromEnvironment());
  }
  FollowDryRun();
  const std::lock_guard lock(settings_lock);
  return InForce();
}

Settings CurrentSettings() { return *SettingsInForce(); }

void Configure(const Settings& settings) {
  Validate(settings);
  auto made = std::make_shared<const Settings>(settings);
  {
    const std::lock_guard lock(settings_lock);
    InForce().swap(made);
  }
  FollowDryRun();
}

bool Disabled() noexcept { return disabled; }

}  // namespace antipode
