// What every lineage has to keep that came from outside.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "antipode/lineage.h"
#include "antipode/observer.h"

namespace antipode::fuzz {

inline void Must(bool holds) {
  if (!holds) std::abort();
}

/// Total and canonical: it is encoded to a text that decodes to an equal lineage and the same text. A bounded text is
/// within its bound, and decodes.
inline void MustTravel(const Lineage& lineage) {
  const std::string encoded = lineage.Serialize();
  const auto again = Lineage::TryDeserialize(encoded);
  Must(again && *again == lineage && again->Serialize() == encoded);
  const std::string bounded = lineage.Serialize(Bound{64, {}});
  Must(bounded.size() + 9 <= 64 && Lineage::TryDeserialize(bounded));
}

/// The input as text. Whoever asks first silences warnings, which would drown what libFuzzer says.
inline std::string_view Text(const std::uint8_t* data, std::size_t size) {
  static const bool silenced = (SetObserver(std::make_shared<Observer>()), true);
  static_cast<void>(silenced);
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace antipode::fuzz
