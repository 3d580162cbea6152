// Names of publications.
#include "rabbitmq/publisher.h"

#include <gtest/gtest.h>

namespace antipode::rabbitmq {
namespace {

TEST(Publications, AreNumberedByLaneForAMinute) {
  Publications publications;
  const auto first = publications.Next("a", 0, 1'800'000'000'000);
  EXPECT_EQ(first.second, 1);
  EXPECT_EQ(publications.Next("a", 60, 1'800'000'060'000), Publications::Name(first.first, 2));
  EXPECT_NE(publications.Next("b", 0, 1'800'000'000'000).first, first.first);
  const auto later = publications.Next("a", 60.1, 1'800'000'060'100);
  EXPECT_NE(later.first, first.first);
  EXPECT_EQ(later.second, 1);
}

TEST(Publications, BeginAnewBehindAHole) {
  Publications publications;
  const auto first = publications.Next("a", 0, 1'800'000'000'000);
  publications.End("a");
  const auto next = publications.Next("a", 0, 1'800'000'000'000);
  EXPECT_NE(next.first, first.first);
  EXPECT_EQ(next.second, 1);
}

TEST(NewPublisher, StatesItsBirth) {
  const std::string name = NewPublisher(1'800'000'000'000);
  EXPECT_EQ(name.size(), 36);
  EXPECT_EQ(name.substr(0, 15), "01a3185c-5000-7");
  EXPECT_NE(std::string("89ab").find(name[19]), std::string::npos);
  EXPECT_EQ(BornAt(name), 1'800'000'000);
}

TEST(BornAt, IsStatedByVersionSevenAlone) {
  EXPECT_EQ(BornAt("01A3185C-5000-7000-8000-000000000001"), 1'800'000'000);
  for (const char* each : {"", "log", "3e11fa47-71ca-11e1-9e33-c80aa9429562", "01a3185c-5000-7000-8000-00000000000",
                           "01a3185c-5000-7000-c000-000000000001", "01a3185c+5000-7000-8000-000000000001",
                           "01a3185x-5000-7000-8000-000000000001"}) {
    EXPECT_EQ(BornAt(each), std::nullopt) << each;
  }
}

}  // namespace
}  // namespace antipode::rabbitmq
