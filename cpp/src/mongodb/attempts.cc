#include "mongodb/attempts.h"

#include <set>
#include <utility>

#include "mongodb/link.h"

namespace antipode::mongodb {
namespace {

/// Of a command that reads what it writes.
constexpr int kCursorKilled = 237;
/// With these nothing was done: the user may not, the server does not know how.
const std::set<int>& kRefusals = *new std::set<int>{13, 59};
const std::set<std::string>& kStoring = *new std::set<std::string>{"aggregate", "mapReduce"};
/// With this label the server vouches for it that nothing was committed.
constexpr const char* kTransient = "TransientTransactionError";

/// Whether a command may have written before it ended with this code.
bool LeavesDoubt(int code) { return Interrupted(code) || code == kCursorKilled; }

int CodeIn(const bson_t& error) { return static_cast<int>(IntAt(error, "code").value_or(0)); }

bool AnyLeavesDoubt(const bson_t& reply) {
  const auto errors = DocAt(reply, "writeErrors");
  Value each;
  if (!errors || !bson_iter_init(&each.at, &errors->bson())) return false;
  while (bson_iter_next(&each.at)) {
    const auto error = DocIn(each);
    if (error && LeavesDoubt(CodeIn(error->bson()))) return true;
  }
  return false;
}

std::string ConcernOf(const bson_t& command) {
  if (const auto number = IntAt(command, "writeConcern.w")) return std::to_string(*number);
  return TextAt(command, "writeConcern.w").value_or("");
}

}  // namespace

std::string SessionIn(const bson_t& command) {
  const auto id = At(command, "lsid.id");
  if (!id || !BSON_ITER_HOLDS_BINARY(&id->at)) return "";
  const std::uint8_t* data = nullptr;
  std::uint32_t size = 0;
  bson_iter_binary(&id->at, nullptr, &size, &data);
  return {reinterpret_cast<const char*>(data), size};
}

Sent SentAs(const Command& command) {
  Sent sent;
  sent.name = command.name;
  sent.server = command.server;
  sent.means = command.does;
  sent.concern = ConcernOf(command.body);
  sent.level = TextAt(command.body, "readConcern.level").value_or("");
  // Retries have the number of the first attempt.
  const auto number = IntAt(command.body, "txnNumber");
  if (number) sent.operation = SessionIn(command.body) + "/" + std::to_string(*number);
  return sent;
}

bool Attempts::First() { return !std::exchange(asked_, true); }

void Attempts::Answer(Floor& floor) const {
  floor.Pass();
  if (floor_ && !floor.Counted()) floor_->Pass();
}

void Attempts::Send(Sent sent) {
  if (open_) in_doubt_ = true;
  open_ = sent.Writes();
  sent_ = std::move(sent);
}

const Sent* Attempts::Last(const std::string& name) const { return sent_ && sent_->name == name ? &*sent_ : nullptr; }

void Attempts::Answered(const bson_t& reply) {
  if (!sent_->Writes()) return;
  open_ = false;
  if (sent_->concern == "0") return Doubt();  // The client says so itself: the server does not answer.
  lost_.erase(sent_->operation);
  const bool complete = sent_->name == "insert" || !bson_has_field(&reply, "writeErrors");
  const bool untouched = complete && IntAt(reply, "n") == 0;
  const bool met = !bson_has_field(&reply, "writeConcernError");
  if (!untouched) Wrote(reply, sent_->concern == "majority" && met);
  if (AnyLeavesDoubt(reply)) Doubt();
}

void Attempts::Refused(const bson_t& reply) {
  if (!sent_->Writes()) return;
  open_ = false;
  const int code = CodeIn(reply);
  if (sent_->commits) {
    if (!mongoc_error_has_label(&reply, kTransient)) return Doubt();
    lost_.erase(sent_->operation);
    return;
  }
  // What failed may have written before that.
  const bool unknown = sent_->means == Effect::kUnknown;
  if (unknown ? kRefusals.count(code) == 0 : kStoring.count(sent_->name) > 0) {
    Wrote(reply, false);
  } else if (LeavesDoubt(code)) {
    Doubt();
  }
}

void Attempts::Lost() {
  if (!sent_->Writes()) return;
  open_ = false;
  Doubt();
}

void Attempts::Doubt() {
  if (sent_->operation.empty()) {
    in_doubt_ = true;
  } else {
    lost_.insert(sent_->operation);
  }
}

void Attempts::Wrote(const bson_t& reply, bool majority) {
  const auto write = naming_.Named(*sent_, reply, majority);
  if (write) writes_.insert_or_assign(write->key, *write);
}

}  // namespace antipode::mongodb
