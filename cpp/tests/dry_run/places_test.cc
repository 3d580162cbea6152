// Where an application is: its functions, files and lines.
#include "runtime/places.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "antipode/scope.h"
#include "dry_run/recorded.h"

namespace shop {
namespace {

// Not inlined: of a function that is local to a file an optimiser would take the namespaces from its name.

/// An application's own function, which writes.
[[gnu::noinline]] void Publish() { antipode::RecordWrite({"posts", "log", std::uint64_t{5}}); }

[[gnu::noinline]] void PublishFromALambda() {
  const std::function<void()> publish = [] { antipode::RecordWrite({"posts", "log", std::uint64_t{6}}); };
  publish();
}

}  // namespace
}  // namespace shop

namespace antipode::dry_run {
namespace {

TEST(PlainName, IsThatOfTheFunctionWithoutItsParameters) {
  EXPECT_EQ(PlainName("main"), "main");
  EXPECT_EQ(PlainName("shop::Feed::Show(std::string const&) const"), "shop::Feed::Show");
  EXPECT_EQ(PlainName("shop::(anonymous namespace)::Feed::Show()"), "shop::Feed::Show");
  EXPECT_EQ(PlainName("void shop::Each<int, std::vector<int> >(int)"), "shop::Each");
  EXPECT_EQ(PlainName("std::vector<int> shop::All<int>(int (*)(int))"), "shop::All");
  EXPECT_EQ(PlainName("shop::Feed::operator()(int) const"), "shop::Feed::operator()");
  EXPECT_EQ(PlainName("shop::Feed::operator<(shop::Feed const&) const"), "shop::Feed::operator<");
  EXPECT_EQ(PlainName("shop::operator<< <int>(int)"), "shop::operator<<");
  EXPECT_EQ(PlainName("shop::Feed::operator bool() const"), "shop::Feed::operator bool");
  EXPECT_EQ(PlainName("decltype(auto) shop::Any<int>(int)"), "shop::Any");
  EXPECT_EQ(PlainName("shop::Title[abi:cxx11](int)"), "shop::Title");
  EXPECT_EQ(PlainName(""), "");
}

TEST(PlainName, OfALambdaIsThatOfTheFunctionItIsIn) {
  EXPECT_EQ(PlainName("shop::Run(int)::{lambda()#1}::operator()() const"), "shop::Run");
  EXPECT_EQ(PlainName("auto shop::Run(int)::{lambda(auto:1)#2}::operator()<int>(int) const"), "shop::Run");
  EXPECT_EQ(PlainName("shop::(anonymous namespace)::Run(int)::$_0::operator()() const"), "shop::Run");
  EXPECT_EQ(PlainName("shop::Run(int)::Local::Call()"), "shop::Run::Local::Call");
}

TEST(FunctionOfLambda, IsFoundInWhatCallsIt) {
  EXPECT_EQ(FunctionOfLambda("std::_Function_handler<void (), shop::(anonymous namespace)::Run(int)::{lambda()#1}>::"
                             "_M_invoke(std::_Any_data const&)"),
            "shop::Run");
  EXPECT_EQ(
      FunctionOfLambda("void std::__invoke_impl<void, shop::Each<int>(int)::{lambda(int)#2}&>(std::__invoke_other)"),
      "shop::Each");
  EXPECT_EQ(FunctionOfLambda("std::_Function_handler<void (), shop::Run()::$_0>::_M_invoke(std::_Any_data const&)"),
            "shop::Run");
  EXPECT_EQ(FunctionOfLambda("shop::Run(int)"), "");
}

TEST(Places, AreTheNearestCallsThatAreTheApplications) {
  const Recorded recorded;
  const ScopeGuard request;
  shop::Publish();
  shop::PublishFromALambda();
  const auto writes = recorded.Of("write");
  ASSERT_EQ(writes.size(), 2U);
  EXPECT_EQ(writes[0]["site"]["function"], "shop::Publish");
  EXPECT_EQ(writes[1]["site"]["function"], "shop::PublishFromALambda") << "a lambda has the name of what it is in";
#ifdef ANTIPODE_BACKTRACE
  const std::string file = writes[0]["site"]["file"];
  EXPECT_NE(file.find("tests/dry_run/places_test.cc"), std::string::npos) << file;
  EXPECT_GT(writes[0]["site"]["line"], 10);
#endif
}

TEST(Places, OfNamedNamespacesAreTheApplicationsWhereverTheyAre) {
  Settings settings;
  settings.app_packages = std::set<std::string>{"antipode"};
  const Recorded recorded(settings);
  const ScopeGuard request;
  shop::Publish();
  const auto writes = recorded.Of("write");
  ASSERT_EQ(writes.size(), 1U);
  const std::string function = writes[0]["site"]["function"];
  EXPECT_EQ(function.rfind("antipode::", 0), 0U) << function;
}

TEST(Places, WithoutAnyCallAreNamedAllTheSame) {
  Places places(std::nullopt);
  const Place place = places.Of({});
  EXPECT_FALSE(place.file.empty());
  EXPECT_FALSE(place.function.empty());
}

TEST(Places, OfAnUnknownAddressAreNamedAllTheSame) {
  Places places(std::nullopt);
  const Place place = places.Of({1});
  EXPECT_FALSE(place.file.empty());
  EXPECT_FALSE(place.function.empty());
}

}  // namespace
}  // namespace antipode::dry_run
