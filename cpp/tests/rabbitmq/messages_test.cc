// The messages of a client of the application's own: AMQP-CPP, and the like.
#include <gtest/gtest.h>

#include <string>

#include "antipode/propagation.h"
#include "antipode/rabbitmq_messages.h"
#include "antipode/scope.h"

namespace antipode::rabbitmq {
namespace {

std::string Says() {
  const Lineage lineage = Current();
  std::string said;
  for (const WriteId& each : lineage.writes()) said += std::to_string(std::get<std::uint64_t>(each.version));
  for (const Incomplete& each : lineage.incomplete()) said += " " + each.reason;
  return said;
}

std::string Value(const Headers& headers, const std::string& name) {
  std::string found;
  for (const auto& [each, value] : headers) {
    if (each == name) found += found.empty() ? value : "," + value;
  }
  return found;
}

// Each message names itself, and carries what comes before it; the application's own headers stay.
TEST(Messages, HaveTheLineageAndTheirNames) {
  const ScopeGuard request;
  Append({"posts", "log", std::uint64_t{7}, 1});
  Messages messages("news");
  const Headers first = messages.Next("eu", {{"own", "kept"}, {"antipode-write", "copied"}, {"baggage", "a=1"}});
  EXPECT_EQ(Value(first, "own"), "kept");
  const std::string own = Value(first, "antipode-write");
  EXPECT_EQ(std::get<std::uint64_t>(Lineage::Deserialize(own).writes().at(0).version), 1U);
  EXPECT_NE(Value(first, "baggage").find("antipode="), std::string::npos);
  EXPECT_NE(Value(first, "baggage").find(",a=1"), std::string::npos);
  const Headers second = messages.Next("eu");
  const ScopeGuard consumer(Extract(second));
  EXPECT_EQ(Says(), "17") << "the one before it, and the post";
}

// A message enters its scope once it is confirmed, and is in doubt before that and where nobody knows.
TEST(Messages, EnterWithTheirConfirms) {
  Messages messages("news");
  {
    const ScopeGuard request;
    messages.Next("eu");
    EXPECT_EQ(Says(), " in_doubt");
    messages.Confirmed(1, false);
    EXPECT_EQ(Says(), "1");
    messages.Returned(messages.Next("nowhere"));
    messages.Confirmed(2, false);
    EXPECT_EQ(Says(), "1") << "it came back";
    messages.Next("eu", {}, false);
    messages.Confirmed(3, false);
    EXPECT_EQ(Says(), "1") << "nobody hears it";
  }
  for (const bool refused : {true, false}) {
    const ScopeGuard request;
    messages.Next("eu");
    refused ? messages.Refused(4, true) : messages.Lost();
    EXPECT_EQ(Says(), " in_doubt");
  }
}

// What is not confirmed as the channel goes is in doubt, and nothing of one that was moved from is.
TEST(Messages, AreInDoubtWithoutTheirChannel) {
  const ScopeGuard request;
  {
    Messages messages("news");
    messages.Next("eu");
    Messages moved(std::move(messages));
    moved.Confirmed(1, false);
    EXPECT_EQ(Says(), "1");
    moved.Next("eu");
  }
  EXPECT_EQ(Says(), "1 in_doubt");
}

}  // namespace
}  // namespace antipode::rabbitmq
