#include "rabbitmq/confirms.h"

#include <utility>

namespace antipode::rabbitmq {
namespace {

/// Hours are as they count where a text is read.
bool Same(const std::optional<WriteId>& one, const std::optional<WriteId>& other) {
  if (!one || !other) return !one && !other;
  return one->key == other->key && one->version == other->version;
}

}  // namespace

void Confirms::Enter(const std::shared_ptr<Scope>& scope) {
  for (auto& [tag, each] : pending_) {
    if (!each.unknown || each.scope != scope) continue;
    scope->Append(*each.write);
    each.unknown.reset();
  }
}

void Confirms::Returned(const std::optional<WriteId>& write) {
  for (auto& [tag, each] : pending_) {
    if (each.returned || !Same(each.write, write)) continue;
    each.returned = true;
    return;
  }
}

std::vector<Publication> Confirms::Settled(std::uint64_t tag, bool multiple) {
  const auto first = multiple ? pending_.begin() : pending_.lower_bound(tag);
  const auto end = pending_.upper_bound(tag);
  std::vector<Publication> settled;
  for (auto each = first; each != end; each = pending_.erase(each)) settled.push_back(std::move(each->second));
  return settled;
}

std::vector<Publication> Confirms::Rest() {
  return pending_.empty() ? std::vector<Publication>() : Settled(pending_.rbegin()->first, true);
}

}  // namespace antipode::rabbitmq
