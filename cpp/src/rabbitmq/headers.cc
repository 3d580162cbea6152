#include "rabbitmq/headers.h"

#include <algorithm>
#include <stdexcept>
#include <variant>
#include <vector>

#include "antipode/members.h"
#include "antipode/stored.h"

namespace antipode::rabbitmq {

std::uint64_t Received::After() const {
  std::uint64_t after = 0;
  if (!write) return after;
  for (const WriteId& each : causes.writes()) {
    const auto* number = std::get_if<std::uint64_t>(&each.version);
    const bool same = number != nullptr && each.datastore == write->datastore && each.key == write->key;
    if (same) after = std::max(after, *number);
  }
  return after;
}

bool HasLineage(const Headers& headers) {
  return !ValuesOf(headers, kWriteHeader).empty() || !Members(ValuesOf(headers, kBaggage)).empty();
}

std::optional<WriteId> OwnWrite(const Headers& headers) {
  const auto found = ValuesOf(headers, kWriteHeader);
  if (found.empty()) return std::nullopt;
  const std::vector<WriteId> writes = ReceivedText(found.front()).writes();
  if (writes.size() != 1 || !std::holds_alternative<std::uint64_t>(writes.front().version)) {
    throw std::invalid_argument("the message names " + std::to_string(writes.size()) +
                                " writes, or one without number");
  }
  return writes.front();
}

std::optional<Promise> OwnPromise(const Headers& headers) {
  const auto found = ValuesOf(headers, kPromiseHeader);
  return found.empty() ? std::nullopt : std::optional(PromiseOf(found.front()));
}

Received ReceivedOf(const Headers& headers, const std::string& datastore) {
  Received received;
  for (const std::string& each : Members(ValuesOf(headers, kBaggage))) {
    received.causes = received.causes.Merge(Readable(datastore, each));
  }
  try {
    received.write = OwnWrite(headers);
  } catch (const std::exception&) {
    received.causes = received.causes.Merge(Readable(datastore, "?"));
  }
  return received;
}

}  // namespace antipode::rabbitmq
