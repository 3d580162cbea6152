#include <hiredis/hiredis.h>

#include <algorithm>
#include <cstdarg>
#include <deque>
#include <utility>

#include "antipode/errors.h"
#include "antipode/floor.h"
#include "antipode/redis_client.h"
#include "antipode/scope.h"
#include "antipode/settings.h"
#include "antipode/sockets.h"
#include "redis/batch.h"
#include "redis/inside.h"
#include "redis/look.h"

namespace antipode::redis {
namespace {

const Command& kInfo = *new Command{"INFO", "replication"};

/// A command that hiredis formatted; frees it. Throws Error.
std::string Taken(char* formatted, long long length) {
  if (length < 0) throw Error("hiredis cannot format this command");
  std::string bytes(formatted, static_cast<std::size_t>(length));
  redisFreeCommand(formatted);
  return bytes;
}

std::string Formatted(const char* format, va_list arguments) {
  char* formatted = nullptr;
  const int length = redisvFormatCommand(&formatted, format, arguments);
  return Taken(formatted, length);
}

std::string Formatted(const std::vector<std::string_view>& words) {
  std::vector<const char*> starts;
  std::vector<std::size_t> sizes;
  for (const std::string_view word : words) {
    starts.push_back(word.data());
    sizes.push_back(word.size());
  }
  char* formatted = nullptr;
  const auto length = redisFormatCommandArgv(&formatted, static_cast<int>(words.size()), starts.data(), sizes.data());
  return Taken(formatted, length);
}

bool SilencesReplies(const Sending& sent) {
  return sent.name == "CLIENT" && sent.words.size() > 2 && Capitals(sent.words[1]) == "REPLY" &&
         Capitals(sent.words[2]) != "ON";
}

bool Includes(const std::set<Dependency>& all, const std::set<Dependency>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

std::vector<const redisReply*> Seen(const std::vector<OwnedReply>& replies) {
  std::vector<const redisReply*> seen;
  seen.reserve(replies.size());
  for (const OwnedReply& each : replies) seen.push_back(each.get());
  return seen;
}

redisContext* Checked(redisContext* context) {
  if (context == nullptr || context->err != 0 || (context->flags & REDIS_BLOCK) == 0) {
    throw ConfigurationError("a client is of a context that is connected and blocks");
  }
  return context;
}

}  // namespace

void ReplyDeleter::operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }

/// What goes over one connection of the application's: its commands, and questions with them in the same packet.
class Client::Traffic {
 public:
  Traffic(std::shared_ptr<Shim> shim, redisContext* context)
      : shim_(std::move(shim)),
        inside_(shim_->inside()),
        context_(Checked(context)),
        connection_(context, inside_.timeout_s) {}

  void Append(std::string formatted) {
    Sending sent(std::move(formatted));
    if (SilencesReplies(sent)) throw ConfigurationError("a command without a reply has no position: CLIENT REPLY");
    unsent_.push_back(std::move(sent));
  }

  OwnedReply Next() {
    while (answers_.empty() && !unsent_.empty() && Usable()) Exchange(Cut());
    if (answers_.empty()) {
      unsent_.clear();
      return Pushed();
    }
    OwnedReply answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }

  bool Reconnect() {
    unsent_.clear();
    answers_.clear();
    return redisReconnect(context_) == REDIS_OK && Begin();
  }

 private:
  /// Whether the connection works; one that the application made again is asked who it is.
  bool Usable() { return context_->err == 0 && (!connection_.lost() || Begin()); }

  bool Begin() {
    transaction_.reset();
    try {
      connection_ = Connection(context_, inside_.timeout_s);
      return true;
    } catch (const Lost&) {
      return false;
    }
  }

  /// What no command is waiting for: a message of a subscription.
  OwnedReply Pushed() {
    if (context_->err != 0) return nullptr;
    const WithoutSigpipe quiet;
    void* reply = nullptr;
    redisGetReply(context_, &reply);
    return OwnedReply(static_cast<redisReply*>(reply));
  }

  Batch Cut() {
    const auto end = unsent_.begin() + static_cast<std::ptrdiff_t>(FirstOf(unsent_, transaction_.has_value()));
    Batch batch(std::make_move_iterator(unsent_.begin()), std::make_move_iterator(end));
    unsent_.erase(unsent_.begin(), end);
    return batch;
  }

  /// Sends what may go at once, and takes it in. What else was appended is not sent where that throws.
  void Exchange(const Batch& batch) {
    Batch rest = std::exchange(unsent_, {});
    if (!transaction_) stale_ = std::make_shared<StaleRead>();
    std::vector<OwnedReply> replies;
    std::set<Dependency> shown;
    if (const auto floor = FloorOf(batch)) {
      if (!HeldBack(*floor, batch, replies)) return;
      shown = floor->demanded();
    }
    unsent_ = std::move(rest);
    if (replies.empty()) {
      Send(batch, std::move(shown));
    } else {
      CountAnswered(batch, replies);
      Give(std::move(replies));
    }
  }

  /// Counts what may be stale, if any read has its reply. Those of a transaction come with its end.
  void CountAnswered(const Batch& batch, const std::vector<OwnedReply>& replies) {
    if (transaction_) return;
    for (std::size_t nth = 0; nth < replies.size(); ++nth) {
      const Sending& sent = batch[nth];
      const bool reads = Reads(sent.does) || sent.does == Does::kUnknown || sent.name == "EXEC";
      if (reads && replies[nth] && replies[nth]->type != REDIS_REPLY_ERROR) return stale_->Answered();
    }
  }

  // Floors.

  /// What the batch must see; null where nothing.
  std::shared_ptr<Floor> FloorOf(const Batch& batch) {
    if (Disabled()) return nullptr;
    if (transaction_) {
      GuardQueued(batch);
      return nullptr;
    }
    const auto any = [&](const auto& is) { return std::any_of(batch.begin(), batch.end(), is); };
    const bool reads = any([](const Sending& each) { return Reads(each.does); });
    const bool may = any([](const Sending& each) { return each.does == Does::kUnknown || each.name == "MULTI"; });
    return reads || may ? Floor::Current(*shim_, reads, nullptr, stale_) : nullptr;
  }

  /// Reads within a transaction must see what was shown before it began, and no more: nothing can be asked in it.
  void GuardQueued(const Batch& batch) {
    for (const Sending& each : batch) {
      if (!Reads(each.does) && each.does != Does::kUnknown) continue;
      const auto floor = Floor::Current(*shim_, Reads(each.does), nullptr, stale_);
      if (!floor || Includes(transaction_->shown, floor->demanded())) continue;
      floor->Hold([&](double) { return Undecidable(floor->demanded(), "nothing can be asked within MULTI"); });
    }
  }

  /// Holds a batch back until its connection shows what is demanded; where it can be sent again, it goes in the packet
  /// of each check, whose replies count. False where the connection is lost.
  bool HeldBack(Floor& floor, const Batch& batch, std::vector<OwnedReply>& replies) {
    const auto& datastore = shim_->datastore();
    if (!connection_.refusal().empty()) {
      throw ConfigurationError("a read of '" + datastore +
                               "' asks for INFO, which is refused: " + connection_.refusal());
    }
    const bool again =
        std::all_of(batch.begin(), batch.end(), [](const Sending& each) { return Repeatable(each.does); });
    const auto look = [&](double timeout_s) -> Observation {
      try {
        return Look(floor, again ? batch : Batch(), replies, timeout_s);
      } catch (const Lost& error) {
        throw Unreachable(error.what());
      } catch (const Error& error) {
        return Undecidable(floor.demanded(), error.what());
      }
    };
    try {
      floor.Hold(look, shim_.get());
      return true;
    } catch (const Unreachable& error) {
      if (connection_.lost()) return false;
      throw Error(error.what());
    }
  }

  /// Checks; where a log is unknown, once more, together with the log history. Not in a separate transaction, which
  /// would end what the application watches.
  Observation Look(const Floor& floor, const Batch& batch, std::vector<OwnedReply>& replies, double timeout_s) {
    const std::set<WriteId> writes = floor.writes();
    const std::set<Promise> promises = floor.promises();
    std::set<std::string> logs;
    while (true) {
      Seeing seen = Ask(promises, logs, batch, replies, timeout_s);
      const ServerState state = StateIn(seen.at(0));
      Records records;
      if (!promises.empty()) records = RecordsIn(promises, seen.at(1));
      if (!logs.empty()) {
        if (StateIn(seen.back()).log != state.log) return {};
        Learn(inside_.history, state.log, logs, seen.at(seen.size() - 2));
      }
      Observation shown = Shown(state, connection_.process(), writes, inside_.history, records);
      const std::set<std::string> unknown = UnknownLogs(shown);
      if (unknown.empty() || !logs.empty()) return Patient(std::move(shown));
      logs = unknown;
    }
  }

  using Seeing = std::vector<Reply>;

  /// Questions and, after them, what may be sent with them.
  Seeing Ask(const std::set<Promise>& promises, const std::set<std::string>& logs, const Batch& batch,
             std::vector<OwnedReply>& replies, double timeout_s) {
    std::vector<redis::Command> questions{kInfo};
    if (!promises.empty()) questions.push_back(RecordsQuestion(promises, inside_.prefix));
    if (!logs.empty()) {
      questions.push_back(HistoryQuestion(logs));
      questions.push_back(kInfo);
    }
    const WithoutSigpipe quiet;
    for (const redis::Command& each : questions) connection_.Queue(each);
    for (const Sending& each : batch) connection_.QueueFormatted(each.bytes);
    connection_.Flush(timeout_s);
    Seeing seen;
    for (std::size_t nth = 0; nth < questions.size(); ++nth) seen.push_back(connection_.Next());
    replies.clear();
    for (std::size_t nth = 0; nth < batch.size(); ++nth) replies.emplace_back(connection_.Receive().Release());
    return seen;
  }

  // Writes and transactions.

  void Send(const Batch& batch, std::set<Dependency> shown) {
    const bool disabled = Disabled();
    const bool asks = !disabled && connection_.refusal().empty();
    const Questions questions = asks ? QuestionsBeside(batch, transaction_) : Questions();
    std::optional<ServerState> before = transaction_ ? transaction_->before : std::nullopt;
    const bool guarded = transaction_ && !transaction_->shown.empty();
    std::optional<ServerState> behind;
    std::vector<OwnedReply> replies;
    std::string why = asks ? "no answer after it" : connection_.refusal();
    try {
      const WithoutSigpipe quiet;
      Queue(batch, questions);
      if (questions.before) before = StateOf(connection_.Receive().text().value_or(""));
      for (std::size_t nth = 0; nth < batch.size(); ++nth) replies.emplace_back(connection_.Receive().Release());
      if (questions.behind) {
        const Reply info = connection_.Receive();
        behind = StateOf(info.text().value_or(""));
        why = info.error().value_or("INFO replication lacks what a position needs");
      }
    } catch (const Lost& error) {
      why = error.what();
    }
    const Outcome outcome = Settled(batch, Seen(replies), transaction_);
    if (transaction_ && questions.before) {
      transaction_->before = before;
      transaction_->shown = std::move(shown);
    }
    if (!(outcome.astray && guarded)) {
      CountAnswered(batch, replies);
      Give(std::move(replies));
    }
    if (!disabled) Enter(outcome, before, behind, why);
    if (outcome.astray && guarded) throw Error("the connection was made again while it read under a barrier");
  }

  void Queue(const Batch& batch, const Questions& questions) {
    if (questions.before) connection_.Queue(kInfo);
    for (const Sending& each : batch) connection_.QueueFormatted(each.bytes);
    if (questions.behind) connection_.Queue(kInfo);
  }

  void Give(std::vector<OwnedReply> replies) {
    for (OwnedReply& each : replies) answers_.push_back(std::move(each));
  }

  void Enter(const Outcome& outcome, const std::optional<ServerState>& before, const std::optional<ServerState>& behind,
             const std::string& why) {
    const std::string& datastore = shim_->datastore();
    if (outcome.done) {
      const Lineage token =
          outcome.done == Does::kWrite ? OfWrite(datastore, behind) : OfUnknown(datastore, before, behind);
      inside_.entries.Enter(token, connection_, behind, why, inside_.timeout_s);
    }
    if (outcome.in_doubt || outcome.migrated) MarkIncomplete(datastore, "in_doubt");
  }

  std::shared_ptr<Shim> shim_;
  Shim::Inside& inside_;
  redisContext* context_;
  Connection connection_;
  Batch unsent_;
  std::deque<OwnedReply> answers_;
  std::optional<Transaction> transaction_;
  std::shared_ptr<StaleRead> stale_ = std::make_shared<StaleRead>();  ///< Of the batch, or of the transaction.
};

Client::Client(std::shared_ptr<Shim> shim, redisContext* context)
    : traffic_(std::make_unique<Traffic>(std::move(shim), context)) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

OwnedReply Client::Command(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string formatted = Formatted(format, arguments);
  va_end(arguments);
  traffic_->Append(std::move(formatted));
  return traffic_->Next();
}

OwnedReply Client::CommandArgv(const std::vector<std::string_view>& words) {
  traffic_->Append(Formatted(words));
  return traffic_->Next();
}

void Client::AppendCommand(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string formatted = Formatted(format, arguments);
  va_end(arguments);
  traffic_->Append(std::move(formatted));
}

void Client::AppendCommandArgv(const std::vector<std::string_view>& words) { traffic_->Append(Formatted(words)); }

OwnedReply Client::GetReply() { return traffic_->Next(); }
bool Client::Reconnect() { return traffic_->Reconnect(); }

}  // namespace antipode::redis
