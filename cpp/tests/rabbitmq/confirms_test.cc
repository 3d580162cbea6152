// Messages that a broker has not confirmed, and the lineage that leaves meanwhile.
#include "rabbitmq/confirms.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace antipode::rabbitmq {
namespace {

/// A message that was sent from a scope, in a lane of one publisher.
Publication Sent(const std::shared_ptr<Scope>& scope, std::uint64_t number) {
  Publication sent;
  sent.scope = scope;
  sent.write = WriteId{"news", "publisher", number, 1};
  sent.unknown = std::make_unique<OpenBranch>(scope);
  sent.unknown->Unread("news");
  return sent;
}

std::string Says(const Scope& scope) {
  const Lineage lineage = scope.lineage();
  std::string said;
  for (const WriteId& each : lineage.writes()) said += std::to_string(std::get<std::uint64_t>(each.version));
  for (const Incomplete& each : lineage.incomplete()) said += " " + each.reason;
  return said;
}

// A message is in doubt until its confirm; the next one of its scope names it, and no other scope's does.
TEST(Confirms, NamesWhatIsBeforeTheNextMessage) {
  const auto scope = std::make_shared<Scope>();
  const auto other = std::make_shared<Scope>();
  Confirms confirms;
  confirms.Sent(Sent(scope, 1));
  EXPECT_EQ(Says(*scope), " in_doubt");
  confirms.Enter(other);
  confirms.Enter(nullptr);
  EXPECT_EQ(Says(*scope), " in_doubt");
  confirms.Enter(scope);
  EXPECT_EQ(Says(*scope), "1");
  confirms.Sent(Sent(scope, 2));
  EXPECT_EQ(Says(*scope), "1 in_doubt");
  EXPECT_EQ(Says(*other), "");
}

// Once it is settled, its scope is in doubt no more: what enters is said by whoever settles it.
TEST(Confirms, OfWhatIsSettledIsInNoDoubt) {
  const auto scope = std::make_shared<Scope>();
  Confirms confirms;
  for (std::uint64_t number = 1; number <= 3; ++number) confirms.Sent(Sent(scope, number));
  EXPECT_EQ(confirms.Settled(2, true).size(), 2U);
  EXPECT_EQ(Says(*scope), " in_doubt");
  confirms.Rest();
  EXPECT_EQ(Says(*scope), "");
}

}  // namespace
}  // namespace antipode::rabbitmq
