#include "json.h"

#include <stdexcept>

namespace antipode::json {
namespace {

using Named = std::map<std::string, Lineage>;

std::uint64_t U64(const Json& found) { return std::stoull(found.get<std::string>()); }

Lineage Made(const Json& step, const Named& named) {
  const std::string op = step.at("op");
  const auto of = [&](const char* name) { return named.at(step.at(name).get<std::string>()); };
  if (op == "decode") return Lineage::Deserialize(step.at("text").get<std::string>());
  if (op == "append") return of("to").Append(WriteOf(step.at("write")));
  if (op == "remove") return of("from").Remove(WriteOf(step.at("write")));
  if (op == "only") return of("of").Only(step.at("datastores").get<std::set<std::string>>());
  if (op == "mark") return of("of").Marked({step.at("subject"), step.at("reason")});
  if (op == "hold") return of("of").Holdable();
  if (op == "receive") {
    const std::uint64_t now_s = step.at("now_s");
    return of("of").Received(step.at("hour"), now_s + step.at("max_promise_s").get<std::uint64_t>());
  }
  if (op != "merge") throw std::out_of_range("no step that makes a lineage: " + op);
  Lineage merged;
  for (const Json& name : step.at("of")) merged = merged.Merge(named.at(name));
  return merged;
}

Json Checked(const Json& step, const Named& named) {
  const std::string op = step.at("op");
  if (op == "equal") return named.at(step.at("of")[0]) == named.at(step.at("of")[1]);
  const Lineage& lineage = named.at(step.at("of"));
  if (op == "encode") return lineage.Serialize();
  if (op == "count") {
    return {{"writes", lineage.writes().size()},
            {"incomplete", lineage.incomplete().size()},
            {"promises", lineage.promises().size()},
            {"unknown", lineage.unknown().size()}};
  }
  if (op != "encode_bounded") throw std::out_of_range("no step that checks a lineage: " + op);
  Bound bound{step.at("max_bytes"), {}};
  if (step.contains("egress") && !step.at("egress").is_null()) {
    bound.egress = step.at("egress").get<std::set<std::string>>();
  }
  try {
    return lineage.Serialize(bound);
  } catch (const AntipodeError& error) {
    return {{"code", error.code()}};
  }
}

}  // namespace

WriteId WriteOf(const Json& found) {
  const Version version =
      found.contains("opaque") ? Version(found.at("opaque").get<std::string>()) : Version(U64(found.at("version")));
  return {found.at("datastore"), found.at("key"), version, found.value("minted_h", std::uint64_t{0}),
          found.value("covering", false)};
}

Promise PromiseOf(const Json& found) { return {found.at("datastore"), found.at("id"), found.at("expires_s")}; }

Lineage LineageOf(const Json& found) {
  LineageParts parts;
  for (const Json& write : found.value("writes", Json::array())) parts.writes.push_back(WriteOf(write));
  for (const Json& mark : found.value("incomplete", Json::array())) parts.incomplete.push_back({mark[0], mark[1]});
  for (const Json& promise : found.value("promises", Json::array())) {
    parts.promises.push_back(PromiseOf(promise));
  }
  parts.open_branches = std::stoull(found.value("open_branches", std::string("0")));
  parts.unknown = found.value("unknown", std::vector<std::string>{});
  return Lineage(parts);
}

Json Of(const WriteId& write) {
  Json found{{"datastore", write.datastore}, {"key", write.key}};
  if (const auto* number = std::get_if<std::uint64_t>(&write.version)) {
    found["version"] = std::to_string(*number);
  } else {
    found["opaque"] = std::get<std::string>(write.version);
  }
  if (write.written_hour != 0) found["minted_h"] = write.written_hour;
  if (write.covering) found["covering"] = true;
  return found;
}

Json Of(const Promise& promise) {
  return {{"datastore", promise.datastore}, {"id", promise.id}, {"expires_s", promise.expires_s}};
}

Json Of(const Lineage& lineage) {
  Json found = Json::object();
  for (const WriteId& write : lineage.writes()) found["writes"].push_back(Of(write));
  for (const Incomplete& mark : lineage.incomplete()) found["incomplete"].push_back({mark.subject, mark.reason});
  for (const Promise& promise : lineage.promises()) {
    found["promises"].push_back(Of(promise));
  }
  for (const std::string& item : lineage.unknown()) found["unknown"].push_back(item);
  if (lineage.open_branches() != 0) found["open_branches"] = std::to_string(lineage.open_branches());
  return found;
}

Json Algebra(const Json& steps) {
  Named named;
  Json found = Json::array();
  for (const Json& step : steps) {
    if (step.contains("as")) {
      const Lineage& made = named[step.at("as")] = Made(step, named);
      found.push_back(made.Serialize());
    } else {
      found.push_back(Checked(step, named));
    }
  }
  return found;
}

}  // namespace antipode::json
