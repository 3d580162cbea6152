#include "mysql/look.h"

#include <algorithm>

#include "antipode/observer.h"
#include "mysql/facts.h"

namespace antipode::mysql {
namespace {

/// How many servers high a chain of replicas is followed.
constexpr int kMost = 4;

using Judged = std::pair<Status, std::string>;

/// What asking upstream came to.
struct Found {
  bool coming = false;  ///< It is there, or may be: wait.
  bool proof = false;   ///< A primary lacks it.
  bool known = false;   ///< A server there knows its log.
  std::string cause;
};

class Looking {
 public:
  Looking(Servers& servers, bool group) : servers_(servers), group_(group), state_(servers.State(nullptr)) {}

  Looked At(const std::set<WriteId>& writes) {
    std::vector<WriteId> missing;
    for (const WriteId& each : writes) {
      if (each.key == kPrimaryKey) {
        judged_[each] = JudgedPrimary(each);
      } else if (state_->Has(each, true)) {
        judged_[each] = {Status::kVisible, ""};
      } else {
        missing.push_back(each);
      }
    }
    if (!missing.empty()) Judge(missing);
    return {state_, std::move(judged_)};
  }

 private:
  /// Whether the server follows a primary now.
  Judged JudgedPrimary(const WriteId& demand) {
    const auto* named = std::get_if<std::string>(&demand.version);
    const std::string primary = named == nullptr ? "" : *named;
    try {
      Judged found = Follows(primary, nullptr, 0);
      if (found.first == Status::kUnknownLog) {
        found.second = "the server does not follow the primary " + primary + ", which may have been replaced";
      }
      return found;
    } catch (const Error& error) {
      const std::string grant = std::string("GRANT ") + servers_.Grants() + " ON *.*";
      WarnOnce("mysql_privilege", demand.datastore, error.what(),
               "whether a server of '" + demand.datastore +
                   "' follows the primary that was asked for its position cannot be known, so barriers over " +
                   "incomplete lineages fail: " + error.what() + ". What this user lacks is: " + grant);
      return {Status::kUnknownLog,
              "whether the server follows the primary " + primary + " cannot be known: " + error.what() + "; " + grant};
    }
  }

  /// Whether a server is a primary, or follows it over servers that are connected. Throws Error where it may not be
  /// asked.
  Judged Follows(const std::string& primary, const Source* above, int height) {
    if (servers_.Primaries(above).count(primary) != 0) return {Status::kVisible, ""};
    Judged all{Status::kUnknownLog, ""};
    std::optional<Error> refused;
    for (const Source& each : servers_.Sources(above)) {
      try {
        Judged one = FollowsBy(each, primary, height);
        if (one.first == Status::kVisible) return one;
        if (one.first == Status::kNotYet) all = std::move(one);
      } catch (const Error& error) {
        refused = error;
      }
    }
    if (refused && all.first == Status::kUnknownLog) throw Error(*refused);
    return all;
  }

  /// The same of a server by way of one that it follows.
  Judged FollowsBy(const Source& source, const std::string& primary, int height) {
    const std::string host = source.host + ":" + std::to_string(source.port);
    if (!source.connected) return {Status::kNotYet, "a server is not connected to its source " + host};
    if (source.log == primary) return {Status::kVisible, ""};
    if (height >= kMost) return {Status::kUnknownLog, ""};
    try {
      return Follows(primary, &source, height + 1);
    } catch (const Unreachable& error) {
      return {Status::kNotYet, "the source " + host + " cannot be asked: " + error.what()};
    }
  }

  void Judge(const std::vector<WriteId>& missing) {
    std::vector<Source> sources;
    try {
      sources = servers_.Sources(nullptr);
    } catch (const Error& error) {
      Blind(missing, error.what());
      return;
    }
    bool doubtful = false;
    for (const WriteId& each : missing) {
      judged_[each] = JudgedBy(each, sources);
      doubtful = doubtful || judged_[each].first != Status::kNotYet;
    }
    if (!doubtful) return;
    // It may have come, and its source gone, since the first question.
    state_ = servers_.State(nullptr);
    for (const WriteId& each : missing) {
      Judged& judged = judged_[each];
      if (judged.first != Status::kNotYet && state_->Has(each, !sources.empty())) judged = {Status::kVisible, ""};
    }
  }

  /// Judges where the user may not ask for sources: who takes writes may have been promoted.
  void Blind(const std::vector<WriteId>& missing, const std::string& error) {
    const std::string& datastore = missing.front().datastore;
    WarnOnce("mysql_privilege", datastore, error,
             "whether a late write to '" + datastore +
                 "' is lost cannot be known, so that a barrier waits for it until " + "its deadline: " + error +
                 ". This user lacks REPLICATION CLIENT (MariaDB: BINLOG MONITOR, REPLICA MONITOR)");
    for (const WriteId& each : missing) {
      if (auto by_log = JudgedByLog(each)) {
        judged_[each] = *std::move(by_log);
      } else if (!state_->Knows(each)) {
        judged_[each] = {Status::kUnknownLog, "the server does not know this log, nor shows more: " + error};
      } else if (state_->writable()) {
        judged_[each] = {Status::kUnknownLog, "the server takes writes, and does not show more: " + error};
      } else {
        judged_[each] = Late(each, "");
      }
    }
  }

  [[nodiscard]] Judged Late(const WriteId& write, const std::string& more) const {
    const auto* number = std::get_if<std::uint64_t>(&write.version);
    return {Status::kNotYet, Joined({"the server is at " + std::to_string(state_->At(write)) + ", and the write is " +
                                         std::to_string(number == nullptr ? 0 : *number),
                                     more})};
  }

  /// What the log alone says of a write that the server lacks; none where nothing.
  [[nodiscard]] std::optional<Judged> JudgedByLog(const WriteId& write) const {
    if (!state_->Names(write)) return Judged{Status::kUnknownLog, "it is no position of a log of this kind of server"};
    if (state_->Excludes(write)) return Judged{Status::kLost, "its domain went on without it"};
    return std::nullopt;
  }

  Judged JudgedBy(const WriteId& write, const std::vector<Source>& sources) {
    if (auto by_log = JudgedByLog(write)) return *std::move(by_log);
    if (sources.empty()) return Alone(write);
    std::string trouble;
    for (const Source& each : sources) trouble = Joined({trouble, each.trouble});
    if (AnyBrings(sources, write)) return Late(write, trouble);
    const Found found = Ask(sources, write, 1);
    const std::string& cause = found.cause.empty() ? trouble : found.cause;
    const bool known = found.known || state_->Knows(write);
    if (found.coming || (known && !found.proof)) return Late(write, cause);
    if (known) return {Status::kLost, "neither this server nor the primary that it follows has it"};
    return {Status::kUnknownLog, cause.empty() ? "neither this server nor its primary knows this log" : cause};
  }

  /// Judges where the server follows nobody.
  [[nodiscard]] Judged Alone(const WriteId& write) const {
    if (!state_->Knows(write)) {
      return {Status::kUnknownLog, "the server does not know this log, and follows no other server"};
    }
    if (group_) return Late(write, "");
    if (state_->Has(write, false)) return {Status::kVisible, ""};
    if (state_->writable()) return {Status::kLost, "this primary lacks it and follows no other server"};
    return {Status::kNotYet, "the server follows no other server, and takes no writes either"};
  }

  static bool AnyBrings(const std::vector<Source>& sources, const WriteId& write) {
    return std::any_of(sources.begin(), sources.end(), [&](const Source& each) { return each.Brings(write); });
  }

  Found Ask(const std::vector<Source>& sources, const WriteId& write, int height) {
    Found all;
    all.proof = true;
    for (const Source& each : sources) {
      const Found found = Ask(each, write, height);
      all.coming = all.coming || found.coming;
      all.proof = all.proof && found.proof;
      all.known = all.known || found.known;
      all.cause = Joined({all.cause, found.cause});
    }
    return all;
  }

  Found Ask(const Source& source, const WriteId& write, int height) {
    bool known = false;
    const auto mute = [&](bool coming, const char* why) {
      const std::string where = source.host + ":" + std::to_string(source.port);
      return Found{coming, false, known, "its source " + where + " cannot be asked: " + why};
    };
    try {
      const auto there = servers_.State(&source);
      if (there->Has(write, false)) return {true, false, true, ""};
      known = there->Knows(write);
      return Above(servers_.Sources(&source), *there, write, height);
    } catch (const Unreachable& error) {
      return mute(true, error.what());
    } catch (const Error& error) {
      return mute(false, error.what());
    }
  }

  Found Above(const std::vector<Source>& above, const ServerState& there, const WriteId& write, int height) {
    const bool known = there.Knows(write);
    if (above.empty()) return {false, there.writable() && !group_, known, ""};
    if (AnyBrings(above, write)) return {true, false, true, ""};
    if (height >= kMost) return {false, false, known, "the chain of replicas is too long to follow"};
    Found found = Ask(above, write, height + 1);
    found.known = found.known || known;
    return found;
  }

  Servers& servers_;
  bool group_;
  std::shared_ptr<const ServerState> state_;
  std::map<WriteId, Judged> judged_;
};

}  // namespace

Servers::~Servers() = default;

void Looked::Tell(Observation& shown) const {
  for (const auto& [write, judgement] : judged) {
    shown.statuses[write] = judgement.first;
    if (!judgement.second.empty()) shown.causes[write] = judgement.second;
  }
}

Looked Look(Servers& servers, bool group, const std::set<WriteId>& writes) {
  return Looking(servers, group).At(writes);
}

}  // namespace antipode::mysql
