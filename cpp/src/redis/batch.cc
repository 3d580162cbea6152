#include "redis/batch.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace antipode::redis {
namespace {

bool IsError(const redisReply& reply) { return reply.type == REDIS_REPLY_ERROR; }

bool StartsWith(const redisReply& reply, std::string_view start) {
  return std::string_view(reply.str, reply.len).substr(0, start.size()) == start;
}

bool IsQueued(const redisReply& reply) { return reply.type == REDIS_REPLY_STATUS && StartsWith(reply, "QUEUED"); }

bool Ends(const Sending& sent) { return sent.name == "EXEC" || sent.name == "DISCARD" || sent.name == "RESET"; }

/// Whether more than one answer may come, or without end.
bool Subscribes(const Sending& sent) {
  static constexpr std::array<std::string_view, 7> kNames{"SUBSCRIBE",    "PSUBSCRIBE",   "SSUBSCRIBE", "UNSUBSCRIBE",
                                                          "PUNSUBSCRIBE", "SUNSUBSCRIBE", "MONITOR"};
  return std::find(kNames.begin(), kNames.end(), sent.name) != kNames.end();
}

/// What is known of one connection while replies are taken in.
class Settlement {
 public:
  explicit Settlement(std::optional<Transaction>& transaction) : transaction_(transaction) {}

  void Take(const Sending& sent, const redisReply* reply) {
    if (sent.does == Does::kQueues) {
      TakeEnd(sent, reply);
    } else if (!transaction_) {
      TakeDone(sent, reply);
    } else if (reply == nullptr || IsQueued(*reply)) {
      transaction_->queued.push_back(sent.does);
      transaction_->migrates = transaction_->migrates || sent.name == "MIGRATE";
    } else if (sent.name == "RESET") {
      if (!IsError(*reply)) transaction_.reset();
    } else if (!IsError(*reply)) {
      transaction_.reset();
      outcome_.astray = true;
      TakeDone(sent, reply);
    }
  }
  [[nodiscard]] const Outcome& outcome() const { return outcome_; }

 private:
  void TakeDone(const Sending& sent, const redisReply* reply) {
    if (reply == nullptr) {
      outcome_.in_doubt = outcome_.in_doubt || MayWrite(sent.does);
    } else {
      Note(sent.does, *reply, sent.name == "MIGRATE");
    }
  }

  void TakeEnd(const Sending& sent, const redisReply* reply) {
    if (sent.name == "MULTI") {
      if (!transaction_ && (reply == nullptr || !IsError(*reply))) transaction_.emplace();
      return;
    }
    const auto ended = std::exchange(transaction_, std::nullopt);
    if (sent.name == "DISCARD") return;
    if (reply == nullptr) {
      const bool may = !ended || std::any_of(ended->queued.begin(), ended->queued.end(), MayWrite);
      outcome_.in_doubt = outcome_.in_doubt || may;
    } else if (reply->type == REDIS_REPLY_ARRAY) {
      TakeExecuted(ended, *reply);
    }
  }

  void TakeExecuted(const std::optional<Transaction>& ended, const redisReply& replies) {
    if (!ended) {  // It was begun before anybody saw it.
      outcome_.done = Does::kWrite;
      return;
    }
    const std::size_t both = std::min(replies.elements, ended->queued.size());
    for (std::size_t nth = 0; nth < both; ++nth) Note(ended->queued[nth], *replies.element[nth], ended->migrates);
  }

  void Note(Does does, const redisReply& reply, bool migrates) {
    const bool written = does == Does::kWrite && !IsError(reply);
    // A script that fails may have written before that; one that is not there has not.
    const bool ran = does == Does::kUnknown && !(IsError(reply) && StartsWith(reply, "NOSCRIPT"));
    if (written || (ran && !outcome_.done)) outcome_.done = does;
    outcome_.migrated = outcome_.migrated || (ran && migrates);
  }

  std::optional<Transaction>& transaction_;
  Outcome outcome_;
};

}  // namespace

Sending::Sending(std::string formatted) : bytes(std::move(formatted)), does(Does::kUnknown) {
  std::size_t at = bytes.find('$');
  while (at < bytes.size() && words.size() < kDecidingWords) {
    const std::size_t size = std::stoul(bytes.substr(at + 1, bytes.find('\r', at) - at - 1));
    const std::size_t begin = bytes.find('\n', at) + 1;
    words.push_back(bytes.substr(begin, size));
    at = begin + size + 2;
  }
  if (!words.empty()) name = Capitals(words[0]);
  does = DoesOf(words);
}

std::size_t FirstOf(const Batch& batch, bool queuing) {
  if (queuing) {
    const auto end = std::find_if(batch.begin(), batch.end(), Ends);
    return static_cast<std::size_t>(end - batch.begin()) + (end == batch.end() ? 0 : 1);
  }
  std::size_t open = batch.size();  // Where a transaction begins that is left open; after all where none does.
  for (std::size_t nth = 0; nth < batch.size(); ++nth) {
    if (Subscribes(batch[nth])) return std::max(std::min(open, nth), std::size_t{1});
    if (batch[nth].name == "MULTI") open = std::min(open, nth);
    if (Ends(batch[nth])) open = batch.size();
  }
  return open > 0 ? open : batch.size();
}

Questions QuestionsBeside(const Batch& batch, const std::optional<Transaction>& transaction) {
  bool queuing = transaction.has_value();
  bool writes = false;
  bool unknown = false;
  for (const Sending& each : batch) {
    const bool begun_before = each.name == "EXEC" && (transaction || !queuing);
    writes = writes || MayWrite(each.does) || begun_before;
    unknown = unknown || each.does == Does::kUnknown;
    queuing = (queuing || each.name == "MULTI") && !Ends(each);
  }
  return {!transaction && (unknown || queuing), writes && !queuing};
}

Outcome Settled(const Batch& batch, const std::vector<const redisReply*>& replies,
                std::optional<Transaction>& transaction) {
  Settlement settlement(transaction);
  for (std::size_t nth = 0; nth < batch.size(); ++nth) {
    settlement.Take(batch[nth], nth < replies.size() ? replies[nth] : nullptr);
  }
  return settlement.outcome();
}

}  // namespace antipode::redis
