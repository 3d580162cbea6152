// What one call of an application's came to, over all commands and attempts of its client. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "antipode/floor.h"
#include "antipode/write_id.h"
#include "mongodb/bson.h"
#include "mongodb/commands.h"

namespace antipode::mongodb {

/// A command that is about to be sent.
struct Command {
  const bson_t& body;
  std::string name;
  Effect does;
  std::string server;  ///< The address of the member that it goes to.

  [[nodiscard]] bool InTransaction() const { return bson_has_field(&body, "autocommit"); }
  [[nodiscard]] bool Starts() const { return bson_has_field(&body, "startTransaction"); }
};

/// What is remembered of one that was sent; the command itself is gone with its event.
struct Sent {
  std::string name;
  std::string server;
  Effect means = Effect::kNeither;          ///< To the lineage: a write in a transaction does nothing yet.
  bool commits = false;                     ///< A transaction that wrote.
  std::string concern;                      ///< `w` of its write concern as text; empty where it states none.
  std::string level;                        ///< Of its read concern; empty where it states none.
  std::string operation;                    ///< The same in all attempts that count as one; empty for one alone.
  std::optional<std::int64_t> term_before;  ///< A term in which its server was primary before; none where not asked.

  [[nodiscard]] bool Writes() const { return means == Effect::kWrites || means == Effect::kUnknown; }
};
/// The id of the session that a command is of; empty for none.
std::string SessionIn(const bson_t& command);
/// What a command says of itself.
Sent SentAs(const Command& command);

/// Names writes by their replies.
class Naming {
 public:
  virtual ~Naming() = default;
  /// `majority` where the write's concern was that, and was met. None, and a mark, where there is no name.
  virtual std::optional<WriteId> Named(const Sent& sent, const bson_t& reply, bool majority) = 0;
};

class Attempts {
 public:
  explicit Attempts(Naming& naming) : naming_(naming) {}

  /// Whether this is asked for the first time: by the first command of a read.
  bool First();
  /// What the read must see that was asked for then; null for nothing.
  void Asks(std::shared_ptr<Floor> floor) { floor_ = std::move(floor); }
  /// What counts the read once it is answered, if it may be stale.
  [[nodiscard]] const std::shared_ptr<StaleRead>& stale() const { return stale_; }
  /// The read is sent, under this floor: what no check can show it is counted, once for all attempts.
  void Answer(Floor& floor) const;
  void Send(Sent sent);
  /// The last command that was sent, if it has this name; null for none.
  [[nodiscard]] const Sent* Last(const std::string& name) const;

  /// The last one was answered, by no error; its reply may have errors of single documents.
  void Answered(const bson_t& reply);
  /// The server refused it.
  void Refused(const bson_t& reply);
  /// No answer came.
  void Lost();

  /// Whether nobody knows what became of a write. One without an answer in the end is one that nobody waited for.
  [[nodiscard]] bool Doubtful() const { return in_doubt_ || open_ || !lost_.empty(); }
  /// The last write of each log: one log's later position says all of the earlier.
  [[nodiscard]] const std::map<std::string, WriteId>& writes() const { return writes_; }

 private:
  void Wrote(const bson_t& reply, bool majority);
  void Doubt();

  Naming& naming_;
  std::optional<Sent> sent_;
  std::map<std::string, WriteId> writes_;
  bool asked_ = false;
  std::shared_ptr<Floor> floor_;
  std::shared_ptr<StaleRead> stale_ = std::make_shared<StaleRead>();
  bool open_ = false;
  bool in_doubt_ = false;
  std::set<std::string> lost_;  ///< Operations in doubt: one that is answered in the end is in none.
};

}  // namespace antipode::mongodb
