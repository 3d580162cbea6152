#include "antipode/lineage.h"
#include "antipode/scope.h"
#include "budgets/calls.h"

namespace antipode::budgets {
namespace {

Lineage Three() {
  LineageParts parts;
  for (const char* name : {"a", "b", "c"}) {
    parts.writes.push_back({name, std::string("log-") + name, std::uint64_t{7}, 490'000, false});
  }
  return Lineage(parts);
}

}  // namespace

void CountCore(const Words&) {
  const Lineage three = Three();
  const std::string text = Serialize(three);
  InProcess("scope: empty", [] { const ScopeGuard request; });
  InProcess("scope: 3 entries", [&] { const ScopeGuard request(three); });
  InProcess("scope: text of 3 entries", [&] { const ScopeGuard request(Scope::Received(text)); });
  InProcess("encode: 3 entries", [&] { static_cast<void>(Serialize(three)); });
  InProcess("decode: 3 entries", [&] { static_cast<void>(Lineage::Deserialize(text)); });
}

}  // namespace antipode::budgets
