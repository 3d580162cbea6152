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

/// A reply of one line.
class Line {
 public:
  Line(int type, std::string text) : text_(std::move(text)) {
    reply_.type = type;
    reply_.str = text_.data();
    reply_.len = text_.size();
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  [[nodiscard]] const redisReply* get() const { return &reply_; }

 private:
  std::string text_;
  redisReply reply_{};
};

// Its error says nothing of the commands before it; one that is not there did nothing.
TEST(RedisBatch, AScriptThatFailedMayHaveWritten) {
  std::optional<Transaction> none;
  const Line failed(REDIS_REPLY_ERROR, "ERR oops");
  const Line unknown(REDIS_REPLY_ERROR, "NOSCRIPT No matching script.");
  EXPECT_EQ(Settled(Commands({"EVALSHA x 0"}), {failed.get()}, none).done, Does::kUnknown);
  EXPECT_EQ(Settled(Commands({"EVALSHA x 0"}), {unknown.get()}, none).done, std::nullopt);
  EXPECT_EQ(Settled(Commands({"SET a 1"}), {failed.get()}, none).done, std::nullopt);
}

// A watched key changed, or a command was refused; of one that began before anybody saw it, too.
TEST(RedisBatch, ATransactionThatWasAbortedWroteNothing) {
  redisReply nil{};
  nil.type = REDIS_REPLY_NIL;
  const Line aborted(REDIS_REPLY_ERROR, "EXECABORT Transaction discarded because of previous errors.");
  const Line done(REDIS_REPLY_STATUS, "OK");
  const Line queued(REDIS_REPLY_STATUS, "QUEUED");
  for (const redisReply* reply : {static_cast<const redisReply*>(&nil), aborted.get()}) {
    std::optional<Transaction> transaction;
    const Outcome seen =
        Settled(Commands({"MULTI", "SET a 1", "EXEC"}), {done.get(), queued.get(), reply}, transaction);
    EXPECT_EQ(seen.done, std::nullopt);
    EXPECT_FALSE(seen.in_doubt);
    const Outcome unseen = Settled(Commands({"EXEC"}), {reply}, transaction);
    EXPECT_EQ(unseen.done, std::nullopt);
    EXPECT_FALSE(unseen.in_doubt);
  }
}

// The others may have been done, and are in doubt where they were not answered.
TEST(RedisBatch, ARefusalIsOfOneCommand) {
  std::optional<Transaction> none;
  const Batch writes = Commands({"SET a 1", "SET b 2"});
  const Line refused(REDIS_REPLY_ERROR, "LOADING Redis is loading the dataset in memory");
  const Line done(REDIS_REPLY_STATUS, "OK");
  EXPECT_TRUE(Settled(writes, {refused.get()}, none).in_doubt);
  EXPECT_EQ(Settled(writes, {refused.get(), done.get()}, none).done, Does::kWrite);
  const Outcome nothing = Settled(writes, {refused.get(), refused.get()}, none);
  EXPECT_EQ(nothing.done, std::nullopt);
  EXPECT_FALSE(nothing.in_doubt);
}

TEST(RedisBatch, WhatWasToBeQueuedAndWasNotIsDone) {
  const Line done(REDIS_REPLY_STATUS, "OK");
  std::optional<Transaction> transaction = Transaction();
  const Outcome outcome = Settled(Commands({"SET a 1"}), {done.get()}, transaction);
  EXPECT_TRUE(outcome.astray);
  EXPECT_EQ(outcome.done, Does::kWrite);
  EXPECT_FALSE(transaction);
}

}  // namespace
}  // namespace antipode::redis
