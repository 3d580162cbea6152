// Compiled with -fno-exceptions: no header throws, and a barrier can be
// called without.
#include <chrono>

#include "antipode/barrier.h"
#include "antipode/observer.h"
#include "antipode/propagation.h"
#include "antipode/shim.h"

bool WaitsWithoutExceptions() {
  antipode::BarrierOptions
      options;  // Without a deadline: a mistake, which is returned.
  return antipode::TryBarrier(options).code == "argument" &&
         !antipode::Lineage::TryDeserialize("nonsense");
}
