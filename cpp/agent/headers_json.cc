#include "headers_json.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <stdexcept>
#include <vector>

#include "antipode/errors.h"
#include "antipode/propagation.h"
#include "antipode/scope.h"
#include "antipode/text.h"
#include "sessions_json.h"
#include "settings_json.h"

namespace antipode::json {
namespace {

/// Settings for one vector, and what was before it again afterwards.
class Configured {
 public:
  explicit Configured(const Json& settings) : before_(CurrentSettings()) { Configure(SettingsOf(settings, before_)); }
  ~Configured() { Configure(before_); }
  Configured(const Configured&) = delete;
  Configured& operator=(const Configured&) = delete;

 private:
  Settings before_;
};

Headers HeadersOf(const Json& found) {
  Headers headers;
  for (const Json& each : found) headers.emplace_back(each[0], each[1]);
  return headers;
}

Json Sorted(Headers headers) {
  std::sort(headers.begin(), headers.end());
  Json found = Json::array();
  for (const auto& [name, value] : headers) found.push_back({name, value});
  return found;
}

struct Url {
  std::string scheme;
  std::string host;
  std::optional<unsigned> port;
  std::string path;
};

/// The parts into which a client takes its URL.
Url UrlOf(const std::string& url) {
  static const std::regex kUrl(R"(([a-z]+)://(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)(?::([0-9]+))?([^?#]*).*)");
  std::smatch parts;
  if (!std::regex_match(url, parts, kUrl)) throw std::invalid_argument(url);
  const auto port = parts[3].matched ? std::optional(static_cast<unsigned>(std::stoul(parts[3]))) : std::nullopt;
  return {parts[1], parts[2], port, parts[4]};
}

OutgoingCall CallOf(const Json& url) {
  const Url parts = UrlOf(url);
  return {parts.scheme, parts.host, parts.port, parts.path};
}

Json RequestIn(const Json& given) {
  Headers headers = HeadersOf(given.at("headers"));
  const Lineage lineage = Extract(headers)->lineage();
  Strip(headers);
  Json others = Json::object();
  for (const auto& [name, value] : headers) {
    if (name != "baggage") continue;
    for (const std::string_view member : text::Split(value, ',')) {
      const std::size_t equals = member.find('=');
      if (equals == std::string_view::npos) continue;
      others.emplace(text::Trimmed(member.substr(0, equals)), text::Trimmed(member.substr(equals + 1)));
    }
  }
  return {{"lineage", Of(lineage)}, {"others", others}};
}

void EndAs(OutgoingCall& call, const Json& end) {
  if (end.contains("unknown")) {
    call.Failed();
    return;
  }
  const std::string lineage = end.value("lineage", "");
  call.Answered(end.at("status"), end.contains("lineage") ? std::optional<std::string_view>(lineage) : std::nullopt);
}

Json Calls(const Json& given) {
  ForgetServices();
  const Configured settings(given.value("settings", Json::object()));
  Json calls = Json::array();
  for (const Json& call : given.at("calls")) {
    const ScopeGuard request(LineageOf(given.at("scope")));
    OutgoingCall outgoing = CallOf(call.at("url"));
    Headers headers = HeadersOf(call.at("headers"));
    outgoing.Outfit(headers);
    if (call.value("ended", false)) request.scope()->End();
    const Json end = call.value("end", Json::array());
    for (const Json& each : end.is_array() ? end : Json::array({end})) EndAs(outgoing, each);
    calls.push_back({{"sent", Sorted(headers)}, {"after", Of(request.scope()->lineage())}});
  }
  return {{"calls", calls}};
}

Json ResponseOut(const Json& given) {
  const auto scope = Extract(HeadersOf(given.at("headers")));
  // As they are: a write that is recorded here states its hour.
  for (const Json& write : given.at("adds")) scope->Merge(Lineage({WriteOf(write)}));
  const auto answer = AnswerOf(*scope);
  return {{"answer", answer ? Json(*answer) : Json()}};
}

Json Stripped(const Json& given) {
  Headers headers = HeadersOf(given.at("headers"));
  Strip(headers);
  return {{"kept", Sorted(headers)}};
}

/// Sends a call from a scope; its headers say whether the host may have the lineage.
Json Host(const Json& given) {
  const Configured settings(Json{{"egress_hosts", given.at("egress_hosts")}});
  const ScopeGuard request;
  Headers headers;
  CallOf(given.at("url")).Outfit(headers);
  return {{"sent", !headers.empty()}};
}

Json RefusedHost(const Json& given) {
  try {
    const Configured settings(Json{{"egress_hosts", Json::array({given.at("entry")})}});
    return {{"code", nullptr}};
  } catch (const ConfigurationError& error) {
    return {{"code", error.code()}};
  }
}

/// The lineage at each step `holds`.
Json Scopes(const Json& given) {
  std::vector<std::unique_ptr<ScopeGuard>> guards;
  Json holds = Json::array();
  for (const Json& step : given.at("steps")) {
    const std::string op = step.at("op");
    const auto current = CurrentScope();
    if (op == "extract") {
      const auto scope = Extract(HeadersOf(step.at("headers")), current);
      guards.push_back(std::make_unique<ScopeGuard>(scope));
    } else if (op == "write") {
      RecordWrite(WriteOf(step.at("write")));
    } else if (op == "mark") {
      MarkIncomplete(step.at("subject").get<std::string>(), step.at("reason").get<std::string>());
    } else if (op == "answered") {
      ExtractResponse({{"Antipode-Lineage", step.at("text")}}, "", current.get());
    } else if (op == "end") {
      current->End();
    } else if (op == "stop") {
      Stop();
    } else if (op == "holds") {
      holds.push_back(Of(Current()));
    } else {
      throw std::out_of_range("no step " + op);
    }
  }
  while (!guards.empty()) guards.pop_back();
  return {{"holds", holds}};
}

Json SessionsOf(const Json& given) {
  Json settings{{"session_max_age_s", given.value("session_max_age_s", 60)}};
  if (given.contains("egress")) settings["egress"] = given.at("egress");
  const Configured configured(settings);
  return Sessions(given);
}

}  // namespace

std::optional<Json> DecideHeaders(const std::string& kind, const Json& given) {
  static const std::map<std::string, std::function<Json(const Json&)>> kKinds{
      {"requests_in", RequestIn},
      {"calls", Calls},
      {"responses_out", ResponseOut},
      {"strips", Stripped},
      {"hosts", Host},
      {"scopes", Scopes},
      {"refused_hosts", RefusedHost},
      {"sessions", SessionsOf},
#ifdef ANTIPODE_SESSION_KEYS
      {"session_signatures", SessionSignature},
#endif
  };
  const auto decide = kKinds.find(kind);
  return decide == kKinds.end() ? std::nullopt : std::optional(decide->second(given));
}

}  // namespace antipode::json
