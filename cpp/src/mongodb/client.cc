#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "antipode/clock.h"
#include "antipode/errors.h"
#include "antipode/mongodb_client.h"
#include "antipode/observer.h"
#include "antipode/scope.h"
#include "antipode/settings.h"
#include "mongodb/attempts.h"
#include "mongodb/guard.h"

namespace antipode::mongodb {
namespace {

/// Sessions that are remembered; over that all are forgotten.
constexpr std::size_t kMostSessions = 1'000;

void Unsampled(const std::string& datastore, const std::string& why) {
  Count("uncovered_write", datastore);
  WarnOnce("uncovered_write", datastore, why, "a write to '" + datastore + "' has no position: " + why);
  MarkIncomplete(datastore, "unsampled");
}

bool MayWrite(Effect effect) { return effect == Effect::kWrites || effect == Effect::kUnknown; }

struct DestroyCallbacks {
  void operator()(mongoc_apm_callbacks_t* callbacks) const { mongoc_apm_callbacks_destroy(callbacks); }
};

}  // namespace

/// One call, and whose it is.
struct Client::Running::State {
  explicit State(Traffic& of);

  Traffic& traffic;
  Attempts attempts;
  std::exception_ptr refusal;  ///< Why what was read must not be shown.
  State* outer = nullptr;
};

/// What libmongoc reports to. A pool does so for as long as it lives, also once nobody listens: these are never freed.
struct Client::Ear {
  std::weak_ptr<Traffic> traffic;
  std::string datastore;
  Ear* next = nullptr;

  static Ear& Of(const std::shared_ptr<Traffic>& traffic, const std::string& datastore) {
    static std::atomic<Ear*> all{nullptr};
    auto* made = new Ear{traffic, datastore, all.load()};
    while (!all.compare_exchange_weak(made->next, made)) continue;
    return *made;
  }
  /// A client of the pool is used although the `Client` of it is gone.
  void Gone(const bson_t& body) const noexcept;
};

/// What a client of the application's sends, and what is asked in addition.
class Client::Traffic final : private Naming, public std::enable_shared_from_this<Traffic> {
 public:
  explicit Traffic(std::shared_ptr<Shim> shim) : shim_(std::move(shim)), guard_(*shim_) {}
  ~Traffic() override {
    if (client_ != nullptr) mongoc_client_set_apm_callbacks(client_, nullptr, nullptr);
  }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  void Hear(mongoc_client_t* client) {
    if (client == nullptr || !mongoc_client_set_apm_callbacks(client, Callbacks().get(), &Listener())) {
      throw ConfigurationError("there is no client, or it is of a pool: instrument that one before you pop any");
    }
    client_ = client;
  }
  void Hear(mongoc_client_pool_t* pool) {
    if (pool == nullptr || !mongoc_client_pool_set_apm_callbacks(pool, Callbacks().get(), &Listener())) {
      throw ConfigurationError("there is no pool, or it has callbacks for commands already, and takes no more");
    }
  }

  Naming& naming() { return *this; }
  /// The call of some client that runs in this thread; null for none.
  static Running::State*& Current() {
    static thread_local Running::State* current = nullptr;
    return current;
  }
  std::unique_ptr<Running::State> Begin() {
    auto state = std::make_unique<Running::State>(*this);
    state->outer = std::exchange(Current(), state.get());
    return state;
  }
  /// Enters what a call did.
  void Settle(const Attempts& attempts) {
    if (Disabled()) return;
    if (attempts.Doubtful()) MarkIncomplete(shim_->datastore(), "in_doubt");
    for (const auto& [log, write] : attempts.writes()) RecordWrite(write);
  }

  /// Remembers why the batch of a cursor must not be shown.
  void Refuse(const mongoc_cursor_t* cursor, const std::exception_ptr& why) {
    const std::lock_guard guard(lock_);
    refused_[cursor] = why;
  }
  void CheckRefused(const mongoc_cursor_t* cursor) {
    const std::lock_guard guard(lock_);
    const auto found = refused_.find(cursor);
    if (found == refused_.end()) return;
    if (mongoc_cursor_current(cursor) != nullptr) std::rethrow_exception(found->second);
    refused_.erase(found);  // That one is gone: this is a new one, at the same address.
  }

 private:
  Ear& Listener() { return Ear::Of(shared_from_this(), shim_->datastore()); }

  static std::unique_ptr<mongoc_apm_callbacks_t, DestroyCallbacks> Callbacks() {
    std::unique_ptr<mongoc_apm_callbacks_t, DestroyCallbacks> callbacks(mongoc_apm_callbacks_new());
    mongoc_apm_set_command_started_cb(callbacks.get(), [](const mongoc_apm_command_started_t* event) {
      const auto* ear = static_cast<const Ear*>(mongoc_apm_command_started_get_context(event));
      const auto traffic = ear->traffic.lock();
      if (!traffic) return ear->Gone(*mongoc_apm_command_started_get_command(event));
      traffic->Started(event);
    });
    mongoc_apm_set_command_succeeded_cb(callbacks.get(), [](const mongoc_apm_command_succeeded_t* event) {
      const auto traffic = static_cast<const Ear*>(mongoc_apm_command_succeeded_get_context(event))->traffic.lock();
      if (!traffic) return;
      traffic->Answered(mongoc_apm_command_succeeded_get_command_name(event),
                        *mongoc_apm_command_succeeded_get_reply(event), true);
    });
    mongoc_apm_set_command_failed_cb(callbacks.get(), [](const mongoc_apm_command_failed_t* event) {
      const auto traffic = static_cast<const Ear*>(mongoc_apm_command_failed_get_context(event))->traffic.lock();
      if (!traffic) return;
      traffic->Answered(mongoc_apm_command_failed_get_command_name(event), *mongoc_apm_command_failed_get_reply(event),
                        false);
    });
    return callbacks;
  }

  [[nodiscard]] Running::State* Here() const {
    Running::State* state = Current();
    return state != nullptr && &state->traffic == this ? state : nullptr;
  }

  // What the client reports. It is C: nothing may be thrown through it.

  void Started(const mongoc_apm_command_started_t* event) noexcept {
    if (Disabled()) return;
    Running::State* running = Here();
    try {
      const bson_t& body = *mongoc_apm_command_started_get_command(event);
      const Command command{body, mongoc_apm_command_started_get_command_name(event), EffectOf(body),
                            mongoc_apm_command_started_get_host(event)->host_and_port};
      if (command.does == Effect::kNeither && !command.InTransaction()) return;
      if (running == nullptr) return Unseen(command.does);
      const auto session = SessionOf(command);
      Pass(*running, command, session.get());
      running->attempts.Send(Meant(command, session.get()));
    } catch (...) {
      Misunderstood();
    }
  }

  /// It cannot be stopped any more: where it must not be sent, what it answers is kept back.
  void Pass(Running::State& running, const Command& command, SessionState* session) {
    if (running.refusal) return;
    try {
      guard_.Pass(command, running.attempts, session);
    } catch (...) {
      running.refusal = std::current_exception();
    }
  }

  void Answered(const char* name, const bson_t& reply, bool done) noexcept {
    Running::State* running = Disabled() ? nullptr : Here();
    const Sent* sent = running == nullptr ? nullptr : running->attempts.Last(name);
    if (sent == nullptr) return;
    try {
      if (done) {
        guard_.Answered(sent->level);
        running->attempts.Answered(reply);
        if (!running->refusal) running->attempts.stale()->Answered();
      } else if (At(reply, "ok")) {
        running->attempts.Refused(reply);
      } else {
        running->attempts.Lost();
      }
    } catch (...) {
      Misunderstood();
    }
  }

  /// What cannot be understood may have been a write.
  void Misunderstood() noexcept {
    try {
      Unsampled("what its client reported was not understood");
    } catch (const std::exception&) {
      // There is no scope: it is counted.
    }
  }

  /// A command that no `Call` sends.
  void Unseen(Effect effect) {
    WarnOnce("mongodb_unseen", shim_->datastore(), "",
             "a client of '" + shim_->datastore() +
                 "' sends commands outside of Call and Next: its writes are not recorded, and its reads do not wait");
    if (MayWrite(effect)) Unsampled("it was sent outside of Call");
  }

  void Unsampled(const std::string& why) { antipode::mongodb::Unsampled(shim_->datastore(), why); }

  // What commands mean.

  /// What is known of the transaction or the snapshot of a command; null for none.
  std::shared_ptr<SessionState> SessionOf(const Command& command) {
    const bool snapshot = TextAt(command.body, "readConcern.level") == "snapshot";
    const std::string id = SessionIn(command.body);
    if (id.empty() || !(snapshot || command.InTransaction())) return nullptr;
    const std::lock_guard guard(lock_);
    if (sessions_.size() >= kMostSessions) sessions_.clear();
    auto& state = sessions_[id];
    if (!state) state = std::make_shared<SessionState>();
    const bool begun = At(command.body, "readConcern.atClusterTime").has_value();
    if (command.Starts() || (snapshot && !begun)) *state = SessionState{false, {}};
    return state;
  }

  Sent Meant(const Command& command, SessionState* session) {
    Sent sent = SentAs(command);
    if (command.InTransaction() && session != nullptr) {
      // Nothing is written before the commit.
      const bool wrote = sent.Writes();
      const bool commit = command.name == "commitTransaction";
      sent.commits = commit && session->wrote;
      sent.means = sent.commits ? Effect::kWrites : Effect::kNeither;
      if (!commit && wrote) session->wrote = true;
      const bool ends = commit || command.name == "abortTransaction";
      RecordUncommitted(shim_->datastore(), session, !ends && session->wrote);
    }
    if (sent.Writes() && !TellsTerm(sent.name) && sent.concern != "majority" && sent.concern != "0") {
      sent.term_before = TermOf(sent.server);
    }
    return sent;
  }

  // What a write is named by.

  std::optional<std::int64_t> TermOf(const std::string& server) {
    {
      const std::lock_guard guard(lock_);
      const auto known = terms_.find(server);
      if (known != terms_.end()) return known->second;
    }
    const auto state = Primary(server);
    return state ? std::optional(state->applied.term) : std::nullopt;
  }

  /// Where a primary stands; none where it is none, or does not answer.
  std::optional<ServerState> Primary(const std::string& server) {
    const auto state = StateOf(server);
    if (!state || !state->primary) return std::nullopt;
    Learn(server, state->applied.term);
    return state;
  }

  std::optional<ServerState> StateOf(const std::string& server) {
    try {
      return Pool::Lease(shim_->inside().members.At(server))->Hello(true);
    } catch (const ConfigurationError& error) {
      WarnOnce("mongodb_configuration", shim_->datastore(), "",
               "writes to '" + shim_->datastore() + "' have no positions: " + error.what());
    } catch (const Error&) {
    } catch (const Unreachable&) {
    }
    return std::nullopt;
  }

  /// Terms only grow.
  void Learn(const std::string& server, std::int64_t term) {
    const std::lock_guard guard(lock_);
    auto& known = terms_[server];
    known = std::max(known, term);
  }

  std::string SetNameOf(const std::string& server) {
    {
      const std::lock_guard guard(lock_);
      const auto known = sets_.find(server);
      if (known != sets_.end()) return known->second;
    }
    const auto state = StateOf(server);
    if (!state) return "";
    const std::lock_guard guard(lock_);
    return sets_[server] = state->set_name;
  }

  std::optional<WriteId> Named(const Sent& sent, const bson_t& reply, bool majority) override {
    const std::string set_name = SetNameOf(sent.server);
    std::optional<Position> position;
    if (!set_name.empty()) {
      Told told = ToldBy(reply, set_name);
      if (told.written) {
        Learn(sent.server, told.written->term);
      } else if (!majority && told.operation) {
        told = Asked(sent, *told.operation);
      }
      position = WritePosition(told, set_name, majority);
    }
    if (!position) {
      Unsampled(set_name.empty() ? "its server does not say which set it is of"
                                 : "neither its reply nor the log shows it");
      return std::nullopt;
    }
    return WriteId{shim_->datastore(), position->first, position->second, shim_->clock().Hour(), false};
  }

  /// What the server says after a write whose reply has no term. Terms only grow: one that was the server's before and
  /// is afterwards is the write's. Else the oplog says it.
  Told Asked(const Sent& sent, std::uint64_t operation) {
    const auto after = Primary(sent.server);
    if (after && sent.term_before == after->applied.term) return {std::nullopt, operation, after};
    return {EntryAt(sent.server, operation), operation, std::nullopt};
  }

  /// The entry of the oplog that is a write; none where it is gone, or may not be read.
  std::optional<OpTime> EntryAt(const std::string& server, std::uint64_t version) {
    try {
      Pool::Lease link(shim_->inside().members.At(server));
      const auto found = AskedOplog(*link).FirstFrom(version);
      return found && found->version == version ? found : std::nullopt;
    } catch (const Unreachable&) {
      return std::nullopt;
    }
  }

  std::shared_ptr<Shim> shim_;
  Guard guard_;
  mongoc_client_t* client_ = nullptr;
  std::mutex lock_;
  std::map<std::string, std::shared_ptr<SessionState>> sessions_;
  std::map<std::string, std::int64_t> terms_;  ///< The latest in which a server was seen to be primary.
  std::map<std::string, std::string> sets_;    ///< The set of each server.
  std::map<const mongoc_cursor_t*, std::exception_ptr> refused_;
};

void Client::Ear::Gone(const bson_t& body) const noexcept {
  if (Disabled()) return;
  try {
    const Effect effect = EffectOf(body);
    if (effect == Effect::kNeither) return;
    WarnOnce("mongodb_gone", datastore, "",
             "a pool of '" + datastore +
                 "' is used although its antipode::mongodb::Client is gone: its writes are not recorded, and its reads "
                 "do not wait. Keep the Client for as long as the pool");
    if (MayWrite(effect)) Unsampled(datastore, "its pool is used although its Client is gone");
  } catch (...) {
    // There is no scope, or no memory; and nothing may be thrown through C.
  }
}

Client::Running::State::State(Traffic& of) : traffic(of), attempts(of.naming()) {}

Client::Client(std::shared_ptr<Shim> shim, _mongoc_client_t* client)
    : traffic_(std::make_shared<Traffic>(std::move(shim))) {
  traffic_->Hear(client);
}
Client::Client(std::shared_ptr<Shim> shim, _mongoc_client_pool_t* pool)
    : traffic_(std::make_shared<Traffic>(std::move(shim))) {
  traffic_->Hear(pool);
}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

Client::Running::Running(Traffic& traffic) : state_(traffic.Begin()) {}

Client::Running::~Running() {
  if (!state_) return;
  Traffic::Current() = state_->outer;
  try {
    state_->traffic.Settle(state_->attempts);
  } catch (const AntipodeError&) {
    // There is no scope: it is counted.
  }
}

void Client::Running::End() {
  const auto state = std::move(state_);
  Traffic::Current() = state->outer;
  state->traffic.Settle(state->attempts);
  if (state->refusal) std::rethrow_exception(state->refusal);
}

bool Client::Next(_mongoc_cursor_t* cursor, const _bson_t** document) {
  traffic_->CheckRefused(cursor);
  Running running(*traffic_);
  const bool found = mongoc_cursor_next(cursor, document);
  if (running.state_->refusal) {
    if (found) traffic_->Refuse(cursor, running.state_->refusal);
    *document = nullptr;
  }
  running.End();
  return found;
}

}  // namespace antipode::mongodb
