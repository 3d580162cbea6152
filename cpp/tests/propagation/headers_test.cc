// Level 3: what headers say and carry, how calls end, scopes, hosts, strip.
#include <algorithm>

#include "antipode/propagation.h"
#include "antipode/scope.h"
#include "antipode/settings.h"
#include "headers_json.h"
#include "settings_guard.h"
#include "vectors.h"

namespace antipode {
namespace {

using vectors::Case;
using vectors::Json;

/// The answer of the agent's library, with settings as they are by default.
Json Decided(const std::string& kind, const Json& vector) {
  const SettingsGuard settings;
  return json::DecideHeaders(kind, vector).value();
}

Json Sorted(Json headers) {
  std::sort(headers.begin(), headers.end());
  return headers;
}

class RequestsIn : public testing::TestWithParam<Case> {};

TEST_P(RequestsIn, StartFromWhatTheirHeadersSay) {
  const Json& vector = GetParam().vector;
  const Json found = Decided("requests_in", vector);
  EXPECT_EQ(json::LineageOf(found.at("lineage")), json::LineageOf(vector.at("lineage")));
  EXPECT_EQ(found.at("others"), vector.value("others", found.at("others")));
}

INSTANTIATE_TEST_SUITE_P(L3, RequestsIn, testing::ValuesIn(vectors::Cases("L3-headers", "requests_in")),
                         vectors::NameOf);

class Calls : public testing::TestWithParam<Case> {};

TEST_P(Calls, CarryHeadersAndLeaveALineage) {
  const Json& calls = GetParam().vector.at("calls");
  const Json found = Decided("calls", GetParam().vector).at("calls");
  ASSERT_EQ(found.size(), calls.size());
  for (std::size_t n = 0; n < calls.size(); ++n) {
    EXPECT_EQ(found[n].at("sent"), Sorted(calls[n].at("sent")));
    if (!calls[n].contains("after")) continue;
    EXPECT_EQ(json::LineageOf(found[n].at("after")), json::LineageOf(calls[n].at("after")));
  }
}

INSTANTIATE_TEST_SUITE_P(L3, Calls, testing::ValuesIn(vectors::Cases("L3-headers", "calls")), vectors::NameOf);

class ResponsesOut : public testing::TestWithParam<Case> {};

TEST_P(ResponsesOut, BringBackWhatTheRequestAdded) {
  EXPECT_EQ(Decided("responses_out", GetParam().vector).at("answer"), GetParam().vector.at("answer"));
}

INSTANTIATE_TEST_SUITE_P(L3, ResponsesOut, testing::ValuesIn(vectors::Cases("L3-headers", "responses_out")),
                         vectors::NameOf);

class Strips : public testing::TestWithParam<Case> {};

TEST_P(Strips, LeaveNothingOfOurs) {
  EXPECT_EQ(Decided("strips", GetParam().vector).at("kept"), Sorted(GetParam().vector.at("kept")));
}

INSTANTIATE_TEST_SUITE_P(L3, Strips, testing::ValuesIn(vectors::Cases("L3-headers", "strips")), vectors::NameOf);

class Hosts : public testing::TestWithParam<Case> {};

TEST_P(Hosts, AreNamedHoweverTheyAreSpelled) {
  EXPECT_EQ(Decided("hosts", GetParam().vector).at("sent"), GetParam().vector.at("sent"));
}

INSTANTIATE_TEST_SUITE_P(L3, Hosts, testing::ValuesIn(vectors::Cases("L3-headers", "hosts")), vectors::NameOf);

class RefusedHosts : public testing::TestWithParam<Case> {};

TEST_P(RefusedHosts, AreAMistakeInTheSetting) {
  EXPECT_EQ(Decided("refused_hosts", {{"entry", GetParam().vector}}).at("code"), "configuration");
}

INSTANTIATE_TEST_SUITE_P(L3, RefusedHosts, testing::ValuesIn(vectors::Cases("L3-headers", "refused_hosts")),
                         vectors::NameOf);

TEST(Hosts, OfACallThatStatesNoneAreAnyWhereAllMayGetALineage) {
  const SettingsGuard guard;
  const ScopeGuard request;
  const auto sent = [] {
    Headers headers;
    OutgoingCall(CallTarget{"orders", "orders", {}, ""}).Outfit(headers);
    return !headers.empty();
  };
  EXPECT_TRUE(sent());
  Settings settings;
  settings.egress_hosts = {"posts.internal", "*.internal"};
  Configure(settings);
  EXPECT_FALSE(sent());
}

class Scopes : public testing::TestWithParam<Case> {};

TEST_P(Scopes, AreOpenEndedOrStopped) {
  std::vector<Json> expected;
  for (const Json& step : GetParam().vector.at("steps")) {
    if (step.at("op") == "holds") expected.push_back(step.at("lineage"));
  }
  const Json found = Decided("scopes", GetParam().vector).at("holds");
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t n = 0; n < expected.size(); ++n) {
    EXPECT_EQ(vectors::Hourless(json::LineageOf(found[n])), json::LineageOf(expected[n]));
  }
}

INSTANTIATE_TEST_SUITE_P(L3, Scopes, testing::ValuesIn(vectors::Cases("L3-headers", "scopes")), vectors::NameOf);

}  // namespace
}  // namespace antipode
