#include "redis/look.h"

#include "antipode/clock.h"

namespace antipode::redis {
namespace {

[[noreturn]] void Refuse(const std::string& message) {
  if (IsPassing(message)) throw Unreachable(message);
  throw Error(message);
}

std::vector<Command> QuestionsOf(const Asked& asked, const std::set<std::string>& logs, const std::string& prefix) {
  std::vector<Command> commands{{"INFO", "replication"}};
  if (asked.key) {
    commands.push_back({"GET", *asked.key});
    commands.push_back({"GET", prefix + *asked.key});
  }
  if (!asked.promises.empty()) commands.push_back(RecordsQuestion(asked.promises, prefix));
  if (!logs.empty()) commands.push_back(HistoryQuestion(logs));
  return commands;
}

/// One question; none where it was refused together with the one for the log history, which says nothing.
std::optional<Looked> Once(Connection& connection, const Asked& asked, const std::set<std::string>& logs,
                           LogHistory& history, const std::string& prefix, double timeout_s) {
  Looked looked;
  if (!asked.key && asked.promises.empty() && logs.empty()) {
    const ServerState state = StateIn(connection.Ask({"INFO", "replication"}, timeout_s));
    looked.shown = Shown(state, connection.process(), asked.writes, history, {});
    return looked;
  }
  const Executed done = Execute(connection, QuestionsOf(asked, logs, prefix), static_cast<bool>(asked.key), timeout_s);
  if (done.error && !logs.empty()) return std::nullopt;
  if (done.error) Refuse(*done.error);
  const Reply& replies = *done.replies;
  std::size_t nth = 0;
  const ServerState state = StateIn(replies.at(nth++));
  if (asked.key) {
    looked.value = replies.at(nth++).Checked().text();
    looked.companion = replies.at(nth++).Checked().text();
    looked.after = done.after;
  }
  Records records;
  if (!asked.promises.empty()) records = RecordsIn(asked.promises, replies.at(nth++));
  if (!logs.empty()) Learn(history, state.log, logs, replies.at(nth));
  looked.shown = Shown(state, connection.process(), asked.writes, history, records);
  return looked;
}

}  // namespace

ServerState StateIn(const Reply& info) {
  if (const auto error = info.error()) Refuse(*error);
  const auto state = StateOf(info.text().value_or(""));
  if (!state) throw Error("INFO replication lacks what a position needs");
  return *state;
}

Command RecordsQuestion(const std::set<Promise>& promises, const std::string& prefix) {
  Command question{"MGET"};
  for (const Promise& each : promises) question.push_back(RecordKey(each, prefix));
  return question;
}

Records RecordsIn(const std::set<Promise>& promises, const Reply& found) {
  Records records;
  std::size_t nth = 0;
  for (const Promise& each : promises) records[each] = found.at(nth++).text();
  return records;
}

Command HistoryQuestion(const std::set<std::string>& logs) {
  Command question{"HMGET", std::string(kLogHistory)};
  question.insert(question.end(), logs.begin(), logs.end());
  return question;
}

void Learn(LogHistory& history, const std::string& log, const std::set<std::string>& logs, const Reply& ends) {
  std::size_t nth = 0;
  for (const std::string& each : logs) {
    if (nth < ends.size()) history.Learn(log, each, ends.at(nth++).text().value_or(""));
  }
}

Observation Undecidable(const std::set<Dependency>& demanded, const std::string& cause) {
  Observation shown;
  for (const Dependency& each : demanded) {
    if (const auto* write = std::get_if<WriteId>(&each)) {
      shown.statuses[*write] = Status::kUndecidable;
      shown.causes[*write] = cause;
    } else {
      shown.promises[std::get<Promise>(each)] = Status::kUndecidable;
      shown.promise_causes[std::get<Promise>(each)] = cause;
    }
  }
  return shown;
}

Executed Execute(Connection& connection, const std::vector<Command>& commands, bool positioned, double timeout_s) {
  connection.Queue({"MULTI"});
  for (const Command& each : commands) connection.Queue(each);
  connection.Queue({"EXEC"});
  if (positioned) connection.Queue({"INFO", "replication"});
  connection.Flush(timeout_s);
  Executed done;
  for (std::size_t nth = 0; nth <= commands.size(); ++nth) {
    const auto error = connection.Next().error();
    if (!done.error) done.error = error;
  }
  done.replies = connection.Next();
  if (!done.error) done.error = done.replies->error();
  if (!positioned) return done;
  try {
    const Reply info = connection.Next();
    done.after = StateOf(info.text().value_or(""));
    done.why = info.error().value_or("INFO replication lacks what a position needs");
  } catch (const Lost& lost) {
    done.why = lost.what();
  }
  return done;
}

std::string RecordKey(const Promise& promise, const std::string& prefix) { return prefix + "promise:" + promise.id; }

Looked Look(Connection& connection, const Asked& asked, LogHistory& history, const std::string& prefix,
            double timeout_s) {
  const double deadline_s = SystemClock().Now() + timeout_s;
  Looked looked = *Once(connection, asked, {}, history, prefix, timeout_s);
  const std::set<std::string> logs = UnknownLogs(looked.shown);
  if (logs.empty()) return looked;
  // In one transaction with the position: one history's log must not meet another's position.
  const double left_s = deadline_s - SystemClock().Now();
  if (auto again = Once(connection, asked, logs, history, prefix, left_s)) return std::move(*again);
  return looked;
}

}  // namespace antipode::redis
