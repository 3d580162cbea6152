// A program without symbols, in which a dry run has nothing but addresses.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

#include "antipode/scope.h"
#include "dry_run/recorded.h"

namespace shop {
namespace {

[[gnu::noinline]] void Publish() { antipode::RecordWrite({"posts", "log", std::uint64_t{5}}); }
[[gnu::noinline]] void Retract() { antipode::RecordWrite({"posts", "log", std::uint64_t{6}}); }

/// How far into this program a function begins.
std::uintptr_t OffsetOf(void (*function)()) {
  Dl_info found{};
  EXPECT_NE(dladdr(reinterpret_cast<void*>(function), &found), 0);
  return reinterpret_cast<std::uintptr_t>(function) - reinterpret_cast<std::uintptr_t>(found.dli_fbase);
}

}  // namespace
}  // namespace shop

namespace antipode::dry_run {
namespace {

TEST(Places, OfAProgramWithoutSymbolsAreOffsetsOfItsOwnCallsInIt) {
  const Recorded recorded;
  const ScopeGuard request;
  shop::Publish();
  std::thread([captured = Capture()] {
    const ScopeGuard guard(captured);
    shop::Retract();
  }).join();
  const auto writes = recorded.Of("write");
  ASSERT_EQ(writes.size(), 2U);
  const std::uintptr_t begins[] = {shop::OffsetOf(shop::Publish), shop::OffsetOf(shop::Retract)};
  for (std::size_t nth = 0; nth < writes.size(); ++nth) {
    EXPECT_EQ(writes[nth]["site"]["file"], "antipode_stripped_test");
    const std::string place = writes[nth]["site"]["function"];
    ASSERT_EQ(place.rfind("+0x", 0), 0U) << place;
    const auto offset = std::strtoull(place.c_str() + 1, nullptr, 16);
    EXPECT_GT(offset, begins[nth]) << place;
    EXPECT_LT(offset, begins[nth] + 1'024) << place;
  }
}

}  // namespace
}  // namespace antipode::dry_run
