// Texts of lineages.
#include "holds.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto lineage = antipode::Lineage::TryDeserialize(antipode::fuzz::Text(data, size));
  if (lineage) antipode::fuzz::MustTravel(*lineage);
  return 0;
}
