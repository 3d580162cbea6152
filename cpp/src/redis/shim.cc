#include <algorithm>
#include <atomic>
#include <mutex>

#include "antipode/clock.h"
#include "antipode/floor.h"
#include "antipode/observer.h"
#include "antipode/redis.h"
#include "antipode/scope.h"
#include "antipode/settings.h"
#include "antipode/stored.h"
#include "redis/inside.h"
#include "redis/look.h"

namespace antipode::redis {
namespace {

/// How often another record of a promise may come first before that is no accident.
constexpr int kFulfilments = 5;
constexpr std::size_t kLogDigits = 40;

Command Recorded(const Promise& promise, const std::string& prefix, std::string_view record) {
  return {"SET", RecordKey(promise, prefix), std::string(record), "NX", "EX", std::to_string(RecordSeconds(promise))};
}

/// The library's own connection. Not pinned: a server's history may change under it.
class RedisEndpoint final : public Endpoint {
 public:
  RedisEndpoint(const Address& address, LogHistory& history, std::string prefix, double timeout_s)
      : connection_(address, timeout_s), history_(history), prefix_(std::move(prefix)) {}

  Observation Observe(const std::set<WriteId>& writes, double timeout_s) override {
    return LookFor({writes, {}, std::nullopt}, timeout_s);
  }
  Observation Promised(const std::set<Promise>& promises, double timeout_s) override {
    return LookFor({{}, promises, std::nullopt}, timeout_s);
  }
  bool IsReplica(double timeout_s) override {
    return Answered([&] { return !StateIn(connection_.Ask({"INFO", "replication"}, timeout_s)).primary; });
  }
  void Interrupt() override { connection_.Interrupt(); }

 private:
  Observation LookFor(const Asked& asked, double timeout_s) {
    return Answered([&] { return Look(connection_, asked, history_, prefix_, timeout_s).shown; });
  }

  template <typename Question>
  auto Answered(Question question) -> decltype(question()) {
    // Each question that is refused would be logged at the server.
    if (!connection_.refusal().empty()) throw Error(connection_.refusal());
    try {
      return question();
    } catch (const Lost& error) {
      throw Unreachable(error.what());
    }
  }

  Connection connection_;
  LogHistory& history_;
  std::string prefix_;
};

}  // namespace

/// What the shim does, and its connections.
class Shim::Table {
 public:
  Table(Shim& shim, Address address, const Options& options)
      : shim_(shim), inside_(shim.datastore(), options), address_(std::move(address)), options_(options) {}

  [[nodiscard]] Inside& inside() noexcept { return inside_; }

  Lineage Send(const Lineage& base, const std::optional<Promise>& fulfils, std::vector<Command> commands) {
    if (fulfils) commands.push_back(Recorded(*fulfils, options_.prefix, kFulfilled));
    for (int nth = 0; nth < kFulfilments; ++nth) {
      auto connection = Take(options_.timeout.count());
      if (fulfils) Watch(*connection, *fulfils);
      Executed done;
      try {
        done = Execute(*connection, commands, connection->refusal().empty(), options_.timeout.count());
      } catch (const Lost&) {
        MarkIncomplete(shim_.datastore(), "in_doubt");
        throw;
      }
      if (done.error) throw Error(*done.error);
      if (done.replies->nil()) continue;  // Another record came first: nothing was written.
      for (std::size_t each = 0; each < done.replies->size(); ++each) done.replies->at(each).Checked();
      if (!connection->refusal().empty()) done.why = connection->refusal();
      const Lineage written = Written(*connection, base, done);
      Release(std::move(connection));
      return written;
    }
    throw Error("the record of a promise changes all the time");
  }

  Reading Read(std::string_view key) {
    std::unique_ptr<Connection> connection;
    std::optional<Looked> looked;
    const auto stale = std::make_shared<StaleRead>();
    if (const auto floor = Floor::Current(shim_, true, nullptr, stale)) looked = Held(*floor, key, connection);
    if (!looked) looked = Free(key, connection);
    stale->Answered();
    Release(std::move(connection));
    return Found(*looked);
  }

  /// The command alone, where the library is turned off.
  Text Plain(const Command& command) {
    auto connection = Take(options_.timeout.count());
    const Text answer = connection->Ask(command, options_.timeout.count()).Checked().text();
    Release(std::move(connection));
    return answer;
  }

  std::unique_ptr<Endpoint> Open(double timeout_s) {
    try {
      return std::make_unique<RedisEndpoint>(address_, inside_.history, options_.prefix, timeout_s);
    } catch (const Lost& error) {
      throw Unreachable(error.what());
    }
  }

  std::set<WriteId> Fence(double timeout_s) {
    try {
      Connection connection(address_, timeout_s);
      const Reply info = connection.Ask({"INFO", "replication"}, timeout_s);
      const auto state = StateOf(info.Checked().text().value_or(""));
      if (!state) throw Error("INFO replication lacks what a position needs");
      if (!state->primary) throw Unreachable("the primary of '" + shim_.datastore() + "' is a replica now");
      if (!state->numbering) return {};
      WriteId covering = PositionOf(shim_.datastore(), *state);
      covering.covering = true;
      return {covering, Following(shim_.datastore(), state->log)};
    } catch (const Lost& error) {
      throw Unreachable(error.what());
    }
  }

  bool Abandon(const Promise& promise, double timeout_s) {
    try {
      Connection connection(address_, timeout_s);
      connection.Queue(Recorded(promise, options_.prefix, kAbandoned));
      connection.Queue({"GET", RecordKey(promise, options_.prefix)});
      connection.Flush(timeout_s);
      connection.Next().Checked();
      return connection.Next().Checked().text() == kAbandoned;
    } catch (const Lost& error) {
      throw Unreachable(error.what());
    }
  }

  void Close() {
    const std::lock_guard guard(lock_);
    closed_ = true;
    idle_.clear();
  }

  void Forked() {
    inside_.Forked();
    Renew(lock_);
    Renew(idle_);
  }

  [[nodiscard]] const std::string& prefix() const { return options_.prefix; }

 private:
  /// Makes the transaction that follows fail if another record comes first.
  void Watch(Connection& connection, const Promise& promise) {
    const std::string key = RecordKey(promise, options_.prefix);
    connection.Queue({"WATCH", key});
    connection.Queue({"GET", key});
    connection.Flush(options_.timeout.count());
    connection.Next().Checked();
    if (connection.Next().Checked().text() == kAbandoned) throw PromiseAbandoned(promise.id);
  }

  Lineage Written(Connection& connection, const Lineage& base, const Executed& done) {
    const Lineage token = OfWrite(shim_.datastore(), done.after);
    inside_.entries.Enter(token, connection, done.after, done.why, options_.timeout.count());
    return base.Merge(token);
  }

  /// A read that waits for nothing.
  Looked Free(std::string_view key, std::unique_ptr<Connection>& connection) {
    if (!connection) connection = Take(options_.timeout.count());
    if (!connection->refusal().empty()) return Unpositioned(*connection, key);
    return Look(*connection, {{}, {}, std::string(key)}, inside_.history, options_.prefix, options_.timeout.count());
  }

  /// A read that is held back until its own connection shows what is demanded: the answer is of the moment of the
  /// check; none where no check was answered, and the read may be all the same.
  std::optional<Looked> Held(Floor& floor, std::string_view key, std::unique_ptr<Connection>& connection) {
    const Asked asked{floor.writes(), floor.promises(), std::string(key)};
    std::optional<Looked> looked;
    const auto observe = [&](double timeout_s) -> Observation {
      looked.reset();
      try {
        if (!connection) connection = Take(timeout_s);
        if (!connection->refusal().empty()) {
          throw ConfigurationError("a read of '" + shim_.datastore() +
                                   "' asks for INFO, which is refused: " + connection->refusal());
        }
        looked = Look(*connection, asked, inside_.history, options_.prefix, timeout_s);
        return Patient(looked->shown);
      } catch (const Lost& error) {
        connection.reset();
        throw Unreachable(error.what());
      } catch (const Error& error) {
        return Undecidable(floor.demanded(), error.what());
      }
    };
    floor.Hold(observe, &shim_);
    return looked;
  }

  Looked Unpositioned(Connection& connection, std::string_view key) {
    const std::string name(key);
    const Executed done =
        Execute(connection, {{"GET", name}, {"GET", options_.prefix + name}}, false, options_.timeout.count());
    if (done.error) throw Error(*done.error);
    Looked looked;
    looked.value = done.replies->at(0).Checked().text();
    looked.companion = done.replies->at(1).Checked().text();
    return looked;
  }

  Reading Found(const Looked& looked) {
    const std::string& datastore = shim_.datastore();
    auto [lineage, match] = Unpacked(looked.value, Extent::kWhole, looked.companion, datastore);
    if (match == Match::kAbsent || match == Match::kForeign) Count(NameOf(match), datastore);
    if (!looked.after || looked.after->BeingReplaced()) Count("unsampled_read", datastore);
    lineage = lineage.Merge(OfRead(datastore, looked.after));
    const auto scope = CurrentScope();
    if (options_.merge_reads && scope) scope->Merge(lineage);
    return {looked.value, lineage};
  }

  std::unique_ptr<Connection> Take(double timeout_s) {
    {
      const std::lock_guard guard(lock_);
      if (closed_) throw Error("the shim of '" + shim_.datastore() + "' is closed");
      while (!idle_.empty()) {
        auto connection = std::move(idle_.back());
        idle_.pop_back();
        if (connection->Usable()) return connection;
      }
    }
    return std::make_unique<Connection>(address_, timeout_s);
  }

  void Release(std::unique_ptr<Connection> connection) {
    const std::lock_guard guard(lock_);
    if (!closed_ && connection && connection->Usable()) idle_.push_back(std::move(connection));
  }

  Shim& shim_;
  Inside inside_;
  Address address_;
  Options options_;
  std::mutex lock_;
  bool closed_ = false;
  std::vector<std::unique_ptr<Connection>> idle_;
};

std::shared_ptr<Shim> Shim::Open(const std::string& datastore, const std::string& host, std::uint16_t port,
                                 const Options& options) {
  if (options.prefix.empty()) {
    throw ConfigurationError("the prefix must not be empty: a companion needs a key of its own");
  }
  std::shared_ptr<Shim> shim(new Shim(datastore, host, port, options));
  Register(shim);
  return shim;
}

Shim::Shim(const std::string& datastore, const std::string& host, std::uint16_t port, const Options& options)
    : Store(datastore, options.reads_from, options.barriers),
      table_(std::make_unique<Table>(*this, Address{host, port}, options)) {}
Shim::~Shim() = default;

Shim::Inside& Shim::inside() const noexcept { return table_->inside(); }

Lineage Shim::Write(std::string_view key, std::string_view value, const std::optional<Lineage>& lineage,
                    const std::optional<Promise>& fulfils) {
  const std::string name(key);
  const Lineage base = lineage ? *lineage : Current();
  if (Disabled()) {
    table_->Plain({"SET", name, std::string(value)});
    return base;
  }
  return table_->Send(
      base, fulfils,
      {{"SET", name, std::string(value)}, {"SET", table_->prefix() + name, Packed(value, StoredText(base))}});
}

Lineage Shim::Delete(std::string_view key, const std::optional<Lineage>& lineage) {
  const std::string name(key);
  const Lineage base = lineage ? *lineage : Current();
  if (Disabled()) {
    table_->Plain({"DEL", name});
    return base;
  }
  const auto life_ms = static_cast<std::uint64_t>(CurrentSettings().horizon.count() * 1'000);
  return table_->Send(
      base, std::nullopt,
      {{"DEL", name},
       {"SET", table_->prefix() + name, Packed(std::nullopt, StoredText(base)), "PX", std::to_string(life_ms)}});
}

Reading Shim::Read(std::string_view key) {
  if (Disabled()) return {table_->Plain({"GET", std::string(key)}), Lineage()};
  try {
    return table_->Read(key);
  } catch (const Unreachable& error) {
    throw Error(error.what());
  }
}

std::unique_ptr<Endpoint> Shim::OpenEndpoint(double timeout_s) { return table_->Open(timeout_s); }
std::set<WriteId> Shim::Fence(double timeout_s) { return table_->Fence(timeout_s); }

std::optional<WriteId> Shim::LogStart(const std::string& key) const {
  // A replication id is random: no other store has a log of that name.
  const bool log = key.size() == kLogDigits && key.find_first_not_of("0123456789abcdef") == std::string::npos;
  return log ? std::optional(WriteId{datastore(), key, std::uint64_t{1}}) : std::nullopt;
}

bool Shim::AbandonPromise(const Promise& promise, double timeout_s) { return table_->Abandon(promise, timeout_s); }

void Shim::Forked() {
  Store::Forked();
  table_->Forked();
}

void Shim::Close() {
  table_->Close();
  Store::Close();
}

}  // namespace antipode::redis
