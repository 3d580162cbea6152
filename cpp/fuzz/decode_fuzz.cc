#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "antipode/lineage.h"

// Total and canonical: whatever decodes is encoded to a text that decodes to an equal lineage and the same text. A
// bounded text is within its bound, and decodes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lineage = antipode::Lineage::TryDeserialize(text);
  if (!lineage) return 0;
  const std::string encoded = lineage->Serialize();
  const auto again = antipode::Lineage::TryDeserialize(encoded);
  if (!again || *again != *lineage || again->Serialize() != encoded) std::abort();
  const std::string bounded = lineage->Serialize(antipode::Bound{64, {}});
  if (bounded.size() + 9 > 64 || !antipode::Lineage::TryDeserialize(bounded)) std::abort();
  return 0;
}
