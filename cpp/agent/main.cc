// The conformance agent of C++ (specification, the conformance agent): does what lines of JSON on standard input say.
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>

#include "json.h"

namespace antipode {
namespace {

using json::Json;

/// Python has it, and this agent does not yet: the test that asks for it is skipped.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

Json Value(const Json& request) {
  const std::string op = request.at("op");
  if (op == "hello") return {{"language", "cpp"}, {"version", "0.1.0"}, {"stores", Json::array()}};
  if (op == "parse") {
    const Lineage lineage = Lineage::Deserialize(request.at("text").get<std::string>());
    return {{"lineage", json::Of(lineage)}, {"text", lineage.Serialize()}};
  }
  if (op == "render") {
    const Lineage lineage = json::LineageOf(request.at("lineage"));
    if (!request.contains("max_bytes") && !request.contains("egress")) return lineage.Serialize();
    Bound bound{request.value("max_bytes", std::size_t{SIZE_MAX}), {}};
    if (request.contains("egress")) bound.egress = request.at("egress").get<std::set<std::string>>();
    return lineage.Serialize(bound);
  }
  if (op == "algebra") return json::Algebra(request.at("steps"));
  if (op == "explain") return Json::array({Lineage::Deserialize(request.at("text").get<std::string>()).Serialize()});
  throw Unsupported("C++ has no operation '" + op + "' yet");
}

Json Error(const std::string& code, const char* message) { return {{"code", code}, {"message", message}}; }

Json Answer(const Json& request) {
  const Json id = request.value("id", Json());
  try {
    return {{"id", id}, {"value", Value(request)}};
  } catch (const LineageDecodeError& error) {
    Json found = Error(error.code(), error.what());
    found["offset"] = error.offset();
    return {{"id", id}, {"error", found}};
  } catch (const AntipodeError& error) {
    return {{"id", id}, {"error", Error(error.code(), error.what())}};
  } catch (const Unsupported& error) {
    return {{"id", id}, {"error", Error("unsupported", error.what())}};
  } catch (const std::exception& error) {
    return {{"id", id}, {"error", Error("agent", error.what())}};
  }
}

}  // namespace
}  // namespace antipode

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto request = antipode::json::Json::parse(line, nullptr, false);
    std::cout << antipode::Answer(request.is_object() ? request : antipode::json::Json::object()).dump() << std::endl;
  }
  return 0;
}
