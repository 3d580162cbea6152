// What Redis answers: companions of values, and `INFO replication`.
#include "holds.h"
#include "redis/companion.h"
#include "redis/position.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = antipode::fuzz::Text(data, size);
  for (const auto extent : {antipode::redis::Extent::kWhole, antipode::redis::Extent::kPart}) {
    antipode::fuzz::MustTravel(antipode::redis::Unpacked("hello", extent, std::string(text), "posts").first);
  }
  const auto state = antipode::redis::StateOf(text);
  if (state) {
    antipode::redis::LogHistory history;
    antipode::redis::Shown(*state, "", {{"posts", state->log, state->offset, 0, false}}, history, {});
  }
  return 0;
}
