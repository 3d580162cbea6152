#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "antipode/lineage.h"

// Total and canonical: whatever decodes is encoded to a text that decodes to an equal lineage and the same text. A
// bounded text is within its bound, and decodes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lineage = antipode::Lineage::TryDecode(text);
  if (!lineage) return 0;
  const std::string encoded = lineage->Encode();
  const auto again = antipode::Lineage::TryDecode(encoded);
  if (!again || *again != *lineage || again->Encode() != encoded) std::abort();
  const std::string bounded = lineage->Encode(antipode::Bound{64, {}});
  if (bounded.size() + 9 > 64 || !antipode::Lineage::TryDecode(bounded)) std::abort();
  return 0;
}
