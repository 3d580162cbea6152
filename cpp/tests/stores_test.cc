// Levels S1 to S3: what shims decide without their stores.
#include <algorithm>
#include <functional>
#include <map>

#include "open_shim.h"
#include "vectors.h"

namespace antipode {
namespace {

using vectors::Case;
using vectors::Json;

/// What a shim comes to and what its vector says, in forms that can be compared.
struct Compared {
  Json found;
  Json expected;
};

using Judge = std::function<Compared(const std::string& store, const Json& vector)>;

Json Decided(const std::string& store, const std::string& kind, const Json& given) {
  return agent::Decide({{"store", store}, {"kind", kind}, {"given", given}});
}

Json Comparable(Json found) {
  if (found.contains("lineage")) {
    found["lineage"] = json::Of(vectors::Hourless(json::LineageOf(found["lineage"])));
  }
  return found;
}

/// A decision has what the vector has under the names of `absent`, and no more. What a vector leaves out is as there.
Judge Decision(const std::string& kind, const Json& absent) {
  return [kind, absent](const std::string& store, const Json& vector) {
    Json expected = absent;
    for (auto& [name, value] : expected.items()) value = vector.value(name, value);
    return Compared{Comparable(Decided(store, kind, vector)), Comparable(expected)};
  };
}

/// What those of `list` have under `name` that have it.
Json Each(const Json& list, const std::string& name) {
  Json values = Json::array();
  for (const Json& one : list) {
    if (one.contains(name)) values.push_back(one.at(name));
  }
  return values;
}

Compared Looks(const std::string& store, const Json& vector) {
  return {Decided(store, "look_at", vector).at("statuses"), Each(vector.at("writes"), "status")};
}

Compared Receipts(const std::string& store, const Json& vector) {
  return {Decided(store, "receipts", vector).at("statuses"), Each(vector.at("steps"), "status")};
}

Compared Publications(const std::string& store, const Json& vector) {
  return {Decided(store, "publications", vector).at("writes"), Each(vector.at("steps"), "write")};
}

Compared Groups(const std::string& store, const Json& vector) {
  Compared compared;
  for (const Json& command : vector.at("commands")) {
    compared.found.push_back({command, Decided(store, "command", {{"command", command}}).at("does")});
    compared.expected.push_back({command, vector.at("does")});
  }
  return compared;
}

Compared Commits(const std::string& store, const Json& vector) {
  Json expected = Json::array();
  for (const Json& session : vector.at("sessions")) expected.push_back(Each(session.at("commits"), "writes"));
  return {Decided(store, "commits", vector).at("writes"), expected};
}

/// The trigger on a row needs a pattern, which this library makes none of.
Compared Updates(const std::string& store, const Json& vector) {
  return {Decided(store, "pattern", {{"text", vector.at("text")}}), vector.at("after")};
}

const std::map<std::string, Judge>& Judges() {
  static const std::map<std::string, Judge> judges{
      {"looks", Looks},
      {"scripts", Receipts},
      {"publications", Publications},
      {"groups", Groups},
      {"commits", Commits},
      {"updates", Updates},
      {"tokens", Decision("token", {{"lineage", Json::object()}, {"notes", Json::object()}})},
      {"batches", Decision("batch", {{"reads", nullptr}, {"may_write", nullptr}, {"repeatable", nullptr}})},
      {"positions", Decision("position", {{"position", nullptr}})},
      {"documents", Decision("found", {{"lineage", nullptr}, {"match", nullptr}})},
      {"covers", Decision("cover", {{"lineage", nullptr}})},
      {"expressions", Decision("expression", {{"expression", nullptr}})},
      {"sets", Decision("gtid_set", {{"logs", nullptr}})},
      {"servers", Decision("server", {{"waits", nullptr}, {"numbers", nullptr}})},
      {"calls", Decision("calls", {{"calls", nullptr}})},
      {"keys", Decision("keys", {{"keys", nullptr}})},
      {"labels", Decision("label", {{"sent", nullptr}})},
      {"messages", Decision("message", {{"lineage", Json::object()}})},
      {"packs", Decision("stored", {{"companion", nullptr}})},
      {"rows", Decision("found", {{"lineage", nullptr}})},
      {"selects", Decision("select", {{"columns", nullptr}})},
      {"sought", Decision("sought", {{"sought", nullptr}})},
      {"statements", Decision("statement", {{"stamped", nullptr}, {"item", nullptr}})},
      {"unpacks", Decision("found", {{"lineage", nullptr}, {"match", nullptr}})},
      {"catalogues", Decision("named", {{"may_write", nullptr}})},
      {"views", Decision("view", {{"may_write", nullptr}})},
  };
  return judges;
}

/// What this library leaves to others: whole stores, and what their clients would store with values of the application.
bool IsLacking(const Case& one) {
  static const std::set<std::string> stores{"activemq", "dynamodb", "postgresql", "s3", "sns"};
  static const std::set<std::string> kinds{"redis keys",    "mariadb selects", "mariadb sought", "mariadb updates",
                                           "mysql selects", "mysql sought",    "mysql updates"};
  return stores.count(one.store) != 0 || kinds.count(one.store + " " + one.kind) != 0;
}

class Stores : public testing::TestWithParam<Case> {};

TEST_P(Stores, AreJudgedAsTheVectorsHaveIt) {
  const Case& one = GetParam();
  ASSERT_EQ(Judges().count(one.kind), 1U) << "nothing here checks this kind of vectors";
  const Judge& judge = Judges().at(one.kind);
  if (IsLacking(one)) {
    EXPECT_THROW(judge(one.store, one.vector), agent::Unsupported);
    return;
  }
  const Compared compared = judge(one.store, one.vector);
  EXPECT_EQ(compared.found, compared.expected);
}

/// Those of stores that were built.
std::vector<Case> Built(const std::string& level) {
  std::vector<Case> cases = vectors::Cases(level);
  std::set<std::string> absent{"mariadb", "mongodb", "mysql", "rabbitmq", "redis"};
  for (const std::string& store : agent::StoresHere()) absent.erase(store);
  const auto is_absent = [&absent](const Case& one) { return absent.count(one.store) != 0; };
  cases.erase(std::remove_if(cases.begin(), cases.end(), is_absent), cases.end());
  return cases;
}

INSTANTIATE_TEST_SUITE_P(S1, Stores, testing::ValuesIn(Built("S1-positions")), vectors::NameOf);
INSTANTIATE_TEST_SUITE_P(S2, Stores, testing::ValuesIn(Built("S2-commands")), vectors::NameOf);
INSTANTIATE_TEST_SUITE_P(S3, Stores, testing::ValuesIn(Built("S3-stored")), vectors::NameOf);

}  // namespace
}  // namespace antipode
