// How tests wait for what another thread does: with a deadline, so that a fault fails the test and does not hang it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace antipode {

/// Waits until `holds()`, as in `ASSERT_TRUE(Eventually([&] { return polls >= 3; }))`; a failure after twenty seconds.
template <typename Condition>
[[nodiscard]] testing::AssertionResult Eventually(const Condition& holds) {
  constexpr std::chrono::seconds kPatience(20);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) {
      return testing::AssertionFailure() << "it did not hold within " << kPatience.count() << " s";
    }
    std::this_thread::yield();
  }
  return testing::AssertionSuccess();
}

}  // namespace antipode
