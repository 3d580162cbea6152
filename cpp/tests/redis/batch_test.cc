// What may go over a connection of hiredis at once, and what is known where replies are missing.
#include "redis/batch.h"

#include <gtest/gtest.h>

namespace antipode::redis {
namespace {

Batch Commands(std::initializer_list<const char*> lines) {
  Batch batch;
  for (const char* line : lines) {
    char* formatted = nullptr;
    const int size = redisFormatCommand(&formatted, line);
    batch.emplace_back(std::string(formatted, static_cast<std::size_t>(size)));
    redisFreeCommand(formatted);
  }
  return batch;
}

TEST(RedisBatch, QuestionsStayOutOfTransactions) {
  EXPECT_EQ(FirstOf(Commands({"SET a 1", "MULTI", "SET b 1"}), false), 1U);
  EXPECT_EQ(FirstOf(Commands({"MULTI", "SET b 1", "EXEC", "GET b"}), false), 4U);
  EXPECT_EQ(FirstOf(Commands({"SET b 1", "EXEC", "GET b"}), true), 2U);
  EXPECT_EQ(FirstOf(Commands({"SET b 1", "GET b"}), true), 2U);
}

TEST(RedisBatch, ASubscriptionGoesAlone) {
  EXPECT_EQ(FirstOf(Commands({"SET a 1", "subscribe a b"}), false), 1U);
  EXPECT_EQ(FirstOf(Commands({"SUBSCRIBE a b", "PING"}), false), 1U);
}

TEST(RedisBatch, AReplyThatIsMissingIsInDoubtWhereItMayHaveWritten) {
  const std::pair<Batch, bool> cases[] = {{Commands({"SET a 1"}), true},
                                          {Commands({"EVAL x 0"}), true},
                                          {Commands({"GET a"}), false},
                                          {Commands({"MULTI", "SET a 1"}), false},
                                          {Commands({"MULTI", "GET a", "EXEC"}), false},
                                          {Commands({"MULTI", "SET a 1", "EXEC"}), true},
                                          {Commands({"MULTI", "SET a 1", "DISCARD"}), false}};
  for (const auto& [batch, in_doubt] : cases) {
    std::optional<Transaction> transaction;
    const Outcome outcome = Settled(batch, {}, transaction);
    EXPECT_EQ(outcome.in_doubt, in_doubt) << batch.back().name;
    EXPECT_FALSE(outcome.done);
  }
}

TEST(RedisBatch, WhatWasToBeQueuedAndWasNotIsDone) {
  char answer[] = "OK";
  redisReply done{};
  done.type = REDIS_REPLY_STATUS;
  done.str = answer;
  done.len = 2;
  std::optional<Transaction> transaction = Transaction();
  const Outcome outcome = Settled(Commands({"SET a 1"}), {&done}, transaction);
  EXPECT_TRUE(outcome.astray);
  EXPECT_EQ(outcome.done, Does::kWrite);
  EXPECT_FALSE(transaction);
}

}  // namespace
}  // namespace antipode::redis
