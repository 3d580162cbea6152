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
}

}  // namespace
}  // namespace antipode::rabbitmq
