#include "barrier_json.h"

#include <stdexcept>

#include "request/untrusted_text.h"
#include "settings_json.h"

namespace antipode::json {
namespace {

std::set<std::string> NamesOf(const Json& found) {
  return found.is_string() ? std::set<std::string>{found.get<std::string>()} : found.get<std::set<std::string>>();
}

Json OfOutcome(const Outcome& outcome) {
  Json found{{"status", NameOf(outcome.status)},
             {"reported", outcome.reported},
             {"server", outcome.server},
             {"cause", outcome.cause},
             {"waited_s", outcome.waited_s}};
  if (const auto* write = std::get_if<WriteId>(&outcome.dependency)) {
    found["write"] = Of(*write);
  } else {
    found["promise"] = Of(std::get<Promise>(outcome.dependency));
  }
  return found;
}

}  // namespace

BarrierOptions BarrierOptionsOf(const Json& given) {
  BarrierOptions options;
  for (const auto& [name, value] : given.items()) {
    if (value.is_null()) continue;
    if (name == "at") {
      options.at = value == "read" ? At::kRead : At::kNow;
    } else if (name == "only") {
      options.only = NamesOf(value);
    } else if (name == "exclude") {
      options.exclude = NamesOf(value);
    } else if (name == "on_unmet") {
      options.raise_unmet = value == "raise";
    } else if (name == "on_unknown") {
      options.on_unknown = PolicyOf(value);
    } else if (name == "on_incomplete") {
      options.on_incomplete = PolicyOf(value);
    } else if (name == "mode") {
      options.mode = ModeOf(value);
    } else {
      throw std::out_of_range("no option of a barrier: " + name);
    }
  }
  return options;
}

Lineage Received(const std::string& text, std::optional<Mode> mode) {
  return mode.value_or(CurrentSettings().mode) == Mode::kDryRun ? Readable("", text) : ReceivedText(text);
}

Status StatusOf(const Json& found) {
  for (int each = 0; each <= static_cast<int>(Status::kExcluded); ++each) {
    if (found == NameOf(static_cast<Status>(each))) return static_cast<Status>(each);
  }
  throw std::out_of_range("no outcome: " + found.dump());
}

Json Of(const BarrierResult& result) {
  Json found{{"ok", result.ok()},           {"outcomes", Json::array()},
             {"waited_s", result.waited_s}, {"eta_s", result.eta_s ? Json(*result.eta_s) : Json()},
             {"incomplete", Json::array()}, {"incomplete_ok", result.incomplete_ok}};
  for (const Outcome& each : result.outcomes) found["outcomes"].push_back(OfOutcome(each));
  for (const Incomplete& mark : result.incomplete) found["incomplete"].push_back({mark.subject, mark.reason});
  return found;
}

}  // namespace antipode::json
