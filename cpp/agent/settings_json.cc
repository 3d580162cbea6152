#include "settings_json.h"

#include <stdexcept>

namespace antipode::json {
namespace {

const char* const kAnswers[] = {"auto", "always", "never"};

const char* const kBarriers[] = {"explicit", "auto"};
const char* const kStale[] = {"serve", "raise"};
const char* const kModes[] = {"enforce", "off", "dry-run"};

}  // namespace

Mode ModeOf(const Json& found) {
  for (const Mode each : {Mode::kEnforce, Mode::kOff, Mode::kDryRun}) {
    if (found == kModes[static_cast<int>(each)]) return each;
  }
  throw std::invalid_argument("a mode is enforce, off or dry-run");
}

std::optional<Policy> PolicyOf(const Json& found) {
  if (found.is_null()) return std::nullopt;
  if (found != "raise" && found != "report") throw std::invalid_argument("a policy is raise or report");
  return found == "raise" ? Policy::kRaise : Policy::kReport;
}

namespace {

OnStale OnStaleOf(const Json& found) {
  if (found != "raise" && found != "serve") throw std::invalid_argument("on_stale is serve or raise");
  return found == "raise" ? OnStale::kRaise : OnStale::kServe;
}

Json Of(const std::optional<Policy>& policy) {
  if (!policy) return nullptr;
  return *policy == Policy::kRaise ? "raise" : "report";
}

std::optional<std::string> TextOf(const Json& found) {
  return found.is_null() ? std::nullopt : std::optional(found.get<std::string>());
}

Json Of(const std::optional<std::string>& text) { return text ? Json(*text) : Json(); }

std::optional<std::set<std::string>> NamesOf(const Json& found) {
  return found.is_null() ? std::nullopt : std::optional(found.get<std::set<std::string>>());
}

Json Of(const std::optional<std::set<std::string>>& names) { return names ? Json(*names) : Json(); }

Answers AnswersOf(const Json& found) {
  for (const Answers each : {Answers::kAuto, Answers::kAlways, Answers::kNever}) {
    if (found == kAnswers[static_cast<int>(each)]) return each;
  }
  throw std::invalid_argument("a peer answers auto, always or never");
}

}  // namespace

Settings SettingsOf(const Json& given, Settings base) {
  const auto seconds = [](const Json& value) { return std::chrono::duration<double>(value.get<double>()); };
  for (const auto& [name, value] : given.items()) {
    if (name == "mode") {
      base.mode = ModeOf(value);
    } else if (name == "max_timeout_s" || name == "max_timeout") {
      base.max_timeout = seconds(value);
    } else if (name == "horizon_s") {
      base.horizon = seconds(value);
    } else if (name == "max_promise_s") {
      base.max_promise = seconds(value);
    } else if (name == "session_max_age_s") {
      base.session_max_age = seconds(value);
    } else if (name == "barriers") {
      base.barriers = value == "auto" ? ReadBarriers::kAuto : ReadBarriers::kExplicit;
    } else if (name == "auto_timeout_s" || name == "auto_timeout") {
      base.auto_timeout = seconds(value);
    } else if (name == "on_stale") {
      base.on_stale = OnStaleOf(value);
    } else if (name == "max_lineage_bytes") {
      base.max_lineage_bytes = value;
    } else if (name == "on_unknown") {
      base.on_unknown = PolicyOf(value);
    } else if (name == "on_incomplete") {
      base.on_incomplete = PolicyOf(value).value();
    } else if (name == "on_unscoped") {
      base.on_unscoped = PolicyOf(value);
    } else if (name == "region") {
      base.region = TextOf(value);
    } else if (name == "dry_run_dir") {
      base.dry_run_dir = TextOf(value);
    } else if (name == "app_packages") {
      base.app_packages = NamesOf(value);
    } else if (name == "egress") {
      base.egress = NamesOf(value);
    } else if (name == "egress_hosts") {
      base.egress_hosts = NamesOf(value);
    } else if (name == "peers") {
      base.peers.clear();
      for (const auto& [peer, answers] : value.items()) base.peers[peer] = AnswersOf(answers);
    } else {
      throw std::out_of_range("C++ has no setting '" + name + "'");
    }
  }
  return base;
}

Json Of(const Settings& settings) {
  Json peers = Json::object();
  for (const auto& [peer, answers] : settings.peers) peers[peer] = kAnswers[static_cast<int>(answers)];
  return {{"mode", kModes[static_cast<int>(settings.mode)]},
          {"max_timeout_s", settings.max_timeout.count()},
          {"horizon_s", settings.horizon.count()},
          {"max_promise_s", settings.max_promise.count()},
          {"session_max_age_s", settings.session_max_age.count()},
          {"barriers", kBarriers[static_cast<int>(settings.barriers)]},
          {"auto_timeout_s", settings.auto_timeout.count()},
          {"on_stale", kStale[static_cast<int>(settings.on_stale)]},
          {"max_lineage_bytes", settings.max_lineage_bytes},
          {"on_unknown", Of(settings.on_unknown)},
          {"on_incomplete", Of(std::optional(settings.on_incomplete))},
          {"on_unscoped", Of(settings.on_unscoped)},
          {"region", Of(settings.region)},
          {"dry_run_dir", Of(settings.dry_run_dir)},
          {"app_packages", Of(settings.app_packages)},
          {"egress", Of(settings.egress)},
          {"egress_hosts", Of(settings.egress_hosts)},
          {"peers", peers}};
}

}  // namespace antipode::json
