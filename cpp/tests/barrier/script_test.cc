// Level 4: barriers, floors, fences and held reads on a virtual clock.
#include <algorithm>
#include <map>
#include <stdexcept>

#include "scripts.h"
#include "vectors.h"

namespace antipode {
namespace {

using vectors::Case;
using vectors::Json;

/// Virtual seconds are sums of floats.
constexpr double kRoundingS = 1e-9;

void ExpectWithin(const Json& span, const Json& found, const char* what) {
  ASSERT_TRUE(found.is_number()) << what;
  EXPECT_GE(found.get<double>(), span.at("at_least").get<double>() - kRoundingS) << what;
  EXPECT_LE(found.get<double>(), span.at("at_most").get<double>() + kRoundingS) << what;
}

Json Sorted(Json values) {
  std::sort(values.begin(), values.end());
  return values;
}

Json DependencyOf(const Json& outcome) {
  return outcome.contains("write") ? json::Of(json::WriteOf(outcome.at("write"))) : outcome.at("promise");
}

/// As they are compared: what a vector leaves out, in no order.
Json Outcomes(const Json& found) {
  Json outcomes = Json::array();
  for (const Json& each : found) {
    outcomes.push_back({DependencyOf(each), each.at("status"), each.value("reported", false)});
  }
  return Sorted(outcomes);
}

/// Those servers that a vector names showed it last.
void ExpectServers(const Json& expect, const Json& found) {
  std::map<Json, Json> servers;
  for (const Json& each : found) servers[DependencyOf(each)] = each.value("server", Json());
  for (const Json& each : expect) {
    EXPECT_EQ(each.value("server", Json()), each.contains("server") ? servers[DependencyOf(each)] : Json());
  }
}

Json Writes(const Json& found) {
  Json writes = Json::array();
  for (const Json& each : found) writes.push_back(json::Of(json::WriteOf(each)));
  return Sorted(writes);
}

void ExpectBarrier(const Json& expect, const Json& ended) {
  EXPECT_EQ(ended.at("code"), expect.value("code", Json()));
  EXPECT_EQ(Outcomes(ended.at("outcomes")), Outcomes(expect.at("outcomes")));
  ExpectServers(expect.at("outcomes"), ended.at("outcomes"));
  if (!ended.at("ok").is_null()) {
    EXPECT_EQ(ended.at("ok"), expect.at("ok"));
    EXPECT_EQ(Sorted(ended.at("incomplete")), Sorted(expect.value("incomplete", Json::array())));
  }
  if (expect.contains("eta_s")) {
    EXPECT_EQ(ended.at("eta_s"), expect.at("eta_s"));
  }
  ExpectWithin(expect.at("finished_s"), ended.at("finished_s"), "finished_s");
}

void ExpectRead(const Json& expect, const Json& ended) {
  EXPECT_EQ(ended.at("code"), expect.value("code", Json()));
  const Json outcomes = expect.value("outcomes", Json::array());
  EXPECT_EQ(Outcomes(ended.at("outcomes")), Outcomes(outcomes));
  ExpectServers(outcomes, ended.at("outcomes"));
  EXPECT_EQ(ended.at("served"), expect.value("served", false));
  ExpectWithin(expect.at("looks"), ended.at("looks"), "looks");
  ExpectWithin(expect.at("finished_s"), ended.at("finished_s"), "finished_s");
}

class Barriers : public testing::TestWithParam<Case> {};

TEST_P(Barriers, EndAsAndWhenTheScriptSays) {
  const Json& script = GetParam().vector;
  if (script.value("settings", Json::object()).value("on_stale", "") == "primary") {
    EXPECT_THROW(agent::RunScript(script), std::invalid_argument) << "no read is made at the primary here";
    return;
  }
  const Json found = agent::RunScript(script);
  ASSERT_EQ(found.at("barriers").size(), script.at("barriers").size());
  for (std::size_t nth = 0; nth < script.at("barriers").size(); ++nth) {
    ExpectBarrier(script.at("barriers")[nth].at("expect"), found.at("barriers")[nth]);
  }
  const Json reads = script.value("reads", Json::array());
  ASSERT_EQ(found.at("reads").size(), reads.size());
  for (std::size_t nth = 0; nth < reads.size(); ++nth) ExpectRead(reads[nth].at("expect"), found.at("reads")[nth]);
  for (std::size_t nth = 0; nth < script.at("stores").size(); ++nth) {
    const Json& store = script.at("stores")[nth];
    if (store.contains("looks")) ExpectWithin(store.at("looks"), found.at("looks")[nth], "looks");
    if (store.contains("fences_asked")) ExpectWithin(store.at("fences_asked"), found.at("fences")[nth], "fences");
  }
  if (!script.contains("scope")) return;
  if (script.contains("scope_after")) {
    EXPECT_EQ(json::LineageOf(found.at("scope")), json::LineageOf(script.at("scope_after")));
  }
  const Json floors = script.value("floors_after", Json::object());
  const Json promised = script.value("promises_after", Json::object());
  EXPECT_EQ(found.at("floors").size(), floors.size());
  for (const auto& [name, writes] : floors.items()) {
    ASSERT_TRUE(found.at("floors").contains(name)) << name;
    EXPECT_EQ(Writes(found.at("floors").at(name)), Writes(writes));
    EXPECT_EQ(Sorted(found.at("promises").at(name)), Sorted(promised.value(name, Json::array())));
  }
}

INSTANTIATE_TEST_SUITE_P(L4Automatic, Barriers, testing::ValuesIn(vectors::Cases("L4-automatic", "scripts")),
                         vectors::NameOf);
INSTANTIATE_TEST_SUITE_P(L4, Barriers, testing::ValuesIn(vectors::Cases("L4-barrier", "scripts")), vectors::NameOf);

}  // namespace
}  // namespace antipode
