// Level 3: what headers say and carry, how calls end, scopes, hosts, strip.
#include <map>
#include <regex>

#include "antipode/propagation.h"
#include "antipode/text.h"
#include "settings_guard.h"
#include "settings_json.h"
#include "vectors.h"

namespace antipode {
namespace {

using vectors::Case;
using vectors::Json;

Headers HeadersOf(const Json& found) {
  Headers headers;
  for (const Json& each : found) headers.emplace_back(each[0], each[1]);
  return headers;
}

/// As a set of headers: their order says nothing.
std::multimap<std::string, std::string> Unordered(const Headers& headers) { return {headers.begin(), headers.end()}; }

struct Url {
  std::string scheme;
  std::string host;
  std::optional<unsigned> port;
  std::string path;
};

Url UrlOf(const std::string& url) {
  static const std::regex kUrl(R"(([a-z]+)://(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)(?::([0-9]+))?([^?#]*).*)");
  std::smatch parts;
  if (!std::regex_match(url, parts, kUrl)) throw std::invalid_argument(url);
  const auto port = parts[3].matched ? std::optional(static_cast<unsigned>(std::stoul(parts[3]))) : std::nullopt;
  return {parts[1], parts[2], port, parts[4]};
}

class RequestsIn : public testing::TestWithParam<Case> {};

TEST_P(RequestsIn, StartFromWhatTheirHeadersSay) {
  const SettingsGuard settings;
  const Json& vector = GetParam().vector;
  Headers headers = HeadersOf(vector.at("headers"));
  EXPECT_EQ(Extract(headers)->lineage(), json::LineageOf(vector.at("lineage")));
  if (!vector.contains("others")) return;
  Strip(headers);
  std::map<std::string, std::string> others;
  for (const auto& [name, value] : headers) {
    if (name != "baggage") continue;
    for (const std::string_view member : text::Split(value, ',')) {
      const std::size_t equals = member.find('=');
      others.emplace(member.substr(0, equals), member.substr(equals + 1));
    }
  }
  EXPECT_EQ(Json(others), vector.at("others"));
}

INSTANTIATE_TEST_SUITE_P(L3, RequestsIn, testing::ValuesIn(vectors::Cases("L3-headers", "requests_in")),
                         vectors::NameOf);

void EndAs(OutgoingCall& call, const Json& end) {
  if (end.contains("unknown")) {
    call.Failed();
    return;
  }
  const std::string lineage = end.value("lineage", "");
  call.Answered(end.at("status"), end.contains("lineage") ? std::optional<std::string_view>(lineage) : std::nullopt);
}

class Calls : public testing::TestWithParam<Case> {};

TEST_P(Calls, CarryHeadersAndLeaveALineage) {
  const Json& vector = GetParam().vector;
  const SettingsGuard settings(json::SettingsOf(vector.value("settings", Json::object()), Settings()));
  for (const Json& call : vector.at("calls")) {
    const ScopeGuard request(json::LineageOf(vector.at("scope")));
    const Url url = UrlOf(call.at("url"));
    OutgoingCall outgoing(url.scheme, url.host, url.port, url.path);
    Headers headers = HeadersOf(call.at("headers"));
    outgoing.Outfit(headers);
    EXPECT_EQ(Unordered(headers), Unordered(HeadersOf(call.at("sent"))));
    if (call.value("ended", false)) request.scope()->End();
    const Json end = call.value("end", Json::array());
    for (const Json& each : end.is_array() ? end : Json::array({end})) EndAs(outgoing, each);
    if (call.contains("after")) {
      EXPECT_EQ(request.scope()->lineage(), json::LineageOf(call.at("after")));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(L3, Calls, testing::ValuesIn(vectors::Cases("L3-headers", "calls")), vectors::NameOf);

class ResponsesOut : public testing::TestWithParam<Case> {};

TEST_P(ResponsesOut, BringBackWhatTheRequestAdded) {
  const SettingsGuard settings;
  const Json& vector = GetParam().vector;
  const auto scope = Extract(HeadersOf(vector.at("headers")));
  for (const Json& write : vector.at("adds")) scope->Merge(Lineage({json::WriteOf(write)}));
  const auto answer = AnswerOf(*scope);
  EXPECT_EQ(answer ? Json(*answer) : Json(), vector.at("answer"));
}

INSTANTIATE_TEST_SUITE_P(L3, ResponsesOut, testing::ValuesIn(vectors::Cases("L3-headers", "responses_out")),
                         vectors::NameOf);

class Strips : public testing::TestWithParam<Case> {};

TEST_P(Strips, LeaveNothingOfOurs) {
  Headers headers = HeadersOf(GetParam().vector.at("headers"));
  Strip(headers);
  EXPECT_EQ(headers, HeadersOf(GetParam().vector.at("kept")));
}

INSTANTIATE_TEST_SUITE_P(L3, Strips, testing::ValuesIn(vectors::Cases("L3-headers", "strips")), vectors::NameOf);

class Hosts : public testing::TestWithParam<Case> {};

TEST_P(Hosts, AreNamedHoweverTheyAreSpelled) {
  const Json& vector = GetParam().vector;
  Settings allowed;
  allowed.egress_hosts = vector.at("egress_hosts").get<std::set<std::string>>();
  const SettingsGuard settings(allowed);
  const ScopeGuard request;
  const Url url = UrlOf(vector.at("url"));
  Headers headers;
  OutgoingCall(url.scheme, url.host, url.port, url.path).Outfit(headers);
  EXPECT_EQ(!headers.empty(), vector.at("sent").get<bool>());
}

INSTANTIATE_TEST_SUITE_P(L3, Hosts, testing::ValuesIn(vectors::Cases("L3-headers", "hosts")), vectors::NameOf);

TEST(Hosts, ThatAreNoneAreRefused) {
  const auto entries = vectors::Entries("L3-headers", "refused_hosts");
  EXPECT_GT(entries.size(), 10U);
  for (const Json& entry : entries) {
    Settings settings;
    settings.egress_hosts = {entry.get<std::string>()};
    EXPECT_THROW(Configure(settings), ConfigurationError) << entry;
  }
}

/// Without mint hours: what is recorded states the present one.
Lineage Hourless(const Lineage& lineage) {
  LineageParts parts;
  for (WriteId write : lineage.writes()) {
    write.minted_h = 0;
    parts.writes.push_back(write);
  }
  parts.incomplete.assign(lineage.incomplete().begin(), lineage.incomplete().end());
  return Lineage(parts);
}

class Scopes : public testing::TestWithParam<Case> {};

TEST_P(Scopes, AreOpenEndedOrStopped) {
  const SettingsGuard settings;
  std::vector<std::unique_ptr<ScopeGuard>> guards;
  for (const Json& step : GetParam().vector.at("steps")) {
    const std::string op = step.at("op");
    const auto current = CurrentScope();
    if (op == "extract") {
      const auto scope = Extract(HeadersOf(step.at("headers")), current);
      guards.push_back(std::make_unique<ScopeGuard>(scope));
    } else if (op == "write") {
      RecordWrite(json::WriteOf(step.at("write")));
    } else if (op == "mark") {
      MarkIncomplete(step.at("subject").get<std::string>(), step.at("reason").get<std::string>());
    } else if (op == "answered") {
      ExtractResponse({{"Antipode-Lineage", step.at("text")}}, "", current.get());
    } else if (op == "end") {
      current->End();
    } else if (op == "stop") {
      Stop();
    } else {
      ASSERT_EQ(op, "holds");
      EXPECT_EQ(Hourless(Current()), json::LineageOf(step.at("lineage")));
    }
  }
  while (!guards.empty()) guards.pop_back();
}

INSTANTIATE_TEST_SUITE_P(L3, Scopes, testing::ValuesIn(vectors::Cases("L3-headers", "scopes")), vectors::NameOf);

TEST(Level3, HasNoKindThatIsNeitherReadHereNorNamedAsLacking) {
  const std::set<std::string> read{"requests_in", "calls",         "responses_out", "strips",
                                   "hosts",       "refused_hosts", "scopes"};
  // C++ has no dry run and no session cookies.
  std::set<std::string> all{"finding_ids", "records", "session_signatures", "sessions", "verdicts"};
  all.insert(read.begin(), read.end());
  EXPECT_EQ(vectors::Kinds("L3-headers"), all);
}

}  // namespace
}  // namespace antipode
