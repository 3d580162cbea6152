#include "antipode/scope.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "antipode/settings.h"
#include "lineage/codec.h"
#include "lineage/grammar.h"
#include "lineage/promise_name.h"
#include "request/inside.h"
#include "request/open_writes.h"
#include "request/untrusted_text.h"
#include "runtime/clock.h"
#include "runtime/dry_run.h"
#include "runtime/forks.h"
#include "runtime/observers.h"
#include "runtime/per_thread.h"
#include "runtime/places.h"
#include "runtime/settings.h"

namespace antipode {
namespace {

const Incomplete& SnapshotMark() {
  static const auto& mark = *new Incomplete{"", "snapshot"};
  return mark;
}

/// Locks of the requests that this thread is in, while it forks: other threads of them, which are not in the child
/// process, may have one.
using Locks = PerThread<std::vector<std::mutex*>>;

template <typename Frames>
void Hold(const Frames& frames) {
  std::set<std::mutex*> locks;
  for (const auto& frame : frames) {
    if (!frame->scope) continue;
    Scope::Inside& inside = frame->scope->inside();
    locks.insert({&inside.lock, &inside.running->lock});
  }
  Locks::Mine().assign(locks.begin(), locks.end());
  for (std::mutex* each : locks) each->lock();
}

void Release() {
  for (std::mutex* each : Locks::Mine()) each->unlock();
  Locks::Mine().clear();
}

/// A lineage with the mark `in_doubt` for each of these.
Lineage InDoubt(Lineage lineage, const std::multiset<std::string>& subjects) {
  for (const std::string& each : subjects) lineage = lineage.Marked({each, "in_doubt"});
  return lineage;
}

}  // namespace

Lineage Kept(const Lineage& lineage) {
  Lineage held = lineage.Holdable();
  if (held.incomplete() != lineage.incomplete()) {
    Count("dropped_for_size");
    WarnOnce("dropped_for_size", "", "scope",
             "a request depends on more than 4096 items: what is not kept is marked incomplete");
  }
  return held;
}

Lineage WithBranches(const Lineage& lineage, std::uint64_t branches) {
  return branches <= lineage.open_branches() ? lineage : lineage.Merge(Lineage(LineageParts{{}, {}, {}, branches, {}}));
}

Lineage Noted(const Scope& scope, const Lineage& lineage) {
  if (lineage.unknown().empty()) return lineage;
  const auto observer = DryRunNow();
  return observer ? observer->Absorb(scope, lineage) : lineage;
}

void Scope::Inside::TakeIn(const Lineage& added) {
  if (!stopped) lineage = Kept(lineage.Merge(own.empty() ? added : added.WithoutPromises(own)));
}

bool Scope::Inside::Enter(const WriteId& write) {
  std::shared_ptr<Scope> outer;
  bool late = false;
  {
    const std::lock_guard guard(lock);
    if (!stopped) lineage = Kept(lineage.Append(write));
    late = answered;
    outer = joined;
  }
  return (outer && outer->inside().Enter(write)) || late;
}

void Scope::Inside::Attach(const std::shared_ptr<const Attachment>& added) {
  const std::lock_guard guard(lock);
  if (stopped) return;
  const Attachment& kind = *added;
  auto& held = attached[typeid(kind)];
  held = held ? held->Joined(*added) : added;
}

const std::shared_ptr<Allowance>& Scope::Inside::Allowed() {
  if (!allowance) {
    const auto settings = SettingsInForce();
    allowance = std::make_shared<Allowance>(std::min(settings->auto_timeout, settings->max_timeout).count());
  }
  return allowance;
}

Lineage Scope::Inside::WithUnread(Lineage held) const {
  if (running->in_doubt == 0) return held;
  const std::lock_guard guard(running->lock);
  return InDoubt(std::move(held), running->unread);
}

Lineage Scope::Inside::Held() const {
  Lineage held;
  {
    const std::lock_guard guard(lock);
    held = lineage;
  }
  return WithUnread(std::move(held));
}

Lineage Scope::Inside::Doubted() const {
  Lineage held = Held();
  if (running->in_doubt == 0) return held;
  const std::lock_guard guard(running->lock);
  return InDoubt(std::move(held), running->streams);
}

Lineage Scope::Inside::Branching() const { return WithBranches(Held(), running->branches); }

std::string Scope::Inside::Leaving() const {
  const std::uint64_t branches = running->branches;
  const auto settings = SettingsInForce();
  Lineage held;
  {
    const std::lock_guard guard(lock);
    if (running->in_doubt == 0 && leaving.Holds(lineage, branches, settings)) return leaving.text;
    held = lineage;
  }
  held = WithUnread(std::move(held));
  std::string text = LeavingText(WithBranches(held, branches), *settings);
  const std::lock_guard guard(lock);
  leaving = {std::move(held), branches, settings, text};
  return text;
}

std::string Scope::Inside::Snapshot() const {
  const std::string text = Leaving();  // Which is kept: it need not be encoded again as it is sent.
  std::string marked = codec::WithMark(text, SnapshotMark());
  if (marked.size() + grammar::kMemberBytes <= SettingsInForce()->max_lineage_bytes) return marked;
  return LeavingText(Lineage::Deserialize(text).Marked(SnapshotMark()));
}

Scope::Scope(const Lineage& start) : inside_(std::make_unique<Inside>()) {
  inside_->lineage = Kept(Noted(*this, start));
}
Scope::~Scope() = default;

std::shared_ptr<Scope> Scope::Received(std::string_view text) { return std::make_shared<Scope>(ReceivedText(text)); }

Lineage Scope::lineage() const { return inside_->Held(); }

std::string Scope::text() const {
  TellOfUnsent(*this);
  const auto observer = DryRunNow();
  if (!observer) return inside_->Leaving();
  observer->Leaves(*this);
  return LeavingText(inside_->Branching(), observer->Notes(*this));
}

std::string Scope::snapshot() const {
  const auto observer = DryRunNow();
  if (!observer) return inside_->Snapshot();
  return LeavingText(inside_->Branching().Marked(SnapshotMark()), observer->Notes(*this));
}

bool Scope::open() const noexcept { return inside_->open; }
bool Scope::stopped() const noexcept { return inside_->stopped; }

Lineage Scope::Append(const WriteId& write) {
  WriteId stamped = write;
  if (stamped.written_hour == 0) stamped.written_hour = SystemClock().Hour();
  const bool late = inside_->Enter(stamped);
  if (late && !write.covering) Count("after_response_write", write.datastore);
  if (const auto observer = DryRunNow()) observer->Wrote(*this, stamped, late);
  return lineage();
}

Lineage Scope::Merge(const Lineage& lineage) {
  const Lineage added = Noted(*this, lineage);
  std::shared_ptr<Scope> joined;
  Lineage found;
  {
    const std::lock_guard guard(inside_->lock);
    inside_->TakeIn(added);
    found = inside_->lineage;
    joined = inside_->joined;
  }
  if (joined) joined->Merge(added);
  return found;
}

Lineage Scope::Remove(const WriteId& write) {
  const std::lock_guard guard(inside_->lock);
  inside_->lineage = inside_->lineage.Remove(write);
  return inside_->lineage;
}

void Scope::MarkIncomplete(std::string_view subject, std::string_view reason) {
  Merge(Lineage().Marked({std::string(subject), std::string(reason)}));
}

void Scope::End() noexcept {
  inside_->open = false;
  if (const auto observer = DryRunNow()) observer->Ended();
}

void Scope::Stop() noexcept {
  const std::lock_guard guard(inside_->lock);
  inside_->open = false;
  inside_->stopped = true;
  inside_->lineage = Lineage();
  inside_->attached.clear();
}

OpenBranch::OpenBranch(std::shared_ptr<Scope> scope) : scope_(std::move(scope)) {
  if (scope_) ++scope_->inside().running->branches;
}

OpenBranch::~OpenBranch() {
  if (!scope_) return;
  Running& running = *scope_->inside().running;
  {
    const std::lock_guard guard(running.lock);
    if (streaming_) running.streams.erase(running.streams.find(*streaming_));
    if (unread_) running.unread.erase(running.unread.find(*unread_));
    running.in_doubt = running.streams.size() + running.unread.size();
  }
  --running.branches;
}

void OpenBranch::Streams(std::string_view service) {
  if (!scope_ || streaming_) return;
  Running& running = *scope_->inside().running;
  const std::lock_guard guard(running.lock);
  running.streams.insert(streaming_.emplace(service));
  ++running.in_doubt;
}

void OpenBranch::Unread(std::string_view datastore) {
  if (!scope_ || unread_) return;
  Running& running = *scope_->inside().running;
  const std::lock_guard guard(running.lock);
  running.unread.insert(unread_.emplace(datastore));
  ++running.in_doubt;
}

/// A scope that is current on one thread until its guard is gone, on whatever thread that happens.
struct ScopeGuard::Frame {
  std::shared_ptr<Scope> scope;
  std::atomic<bool> over{false};
};

/// The scopes of this thread whose guards live, the current one last. Guards that ended elsewhere are left out.
std::vector<std::shared_ptr<ScopeGuard::Frame>>& ScopeGuard::Stack() {
  auto& stack = PerThread<std::vector<std::shared_ptr<Frame>>>::Mine();
  while (!stack.empty() && stack.back()->over) stack.pop_back();
  return stack;
}

ScopeGuard::ScopeGuard(std::shared_ptr<Scope> scope, bool begins) : scope_(std::move(scope)), begins_(begins) {
  if (Disabled()) return;
  static const bool holds = (HoldOwnWhileForking([] { Hold(Stack()); }, Release), true);
  static_cast<void>(holds);
  if (begins) {
    if (const auto observer = DryRunNow()) observer->Opened(*scope_, false);
  }
  frame_ = std::make_shared<Frame>();
  frame_->scope = scope_;
  Stack().push_back(frame_);
}

ScopeGuard::ScopeGuard() : ScopeGuard(std::make_shared<Scope>(), true) {}
ScopeGuard::ScopeGuard(const Lineage& start) : ScopeGuard(std::make_shared<Scope>(start), true) {}
ScopeGuard::ScopeGuard(const Captured& captured) : ScopeGuard(captured.scope(), false) {}
ScopeGuard::ScopeGuard(std::shared_ptr<Scope> scope) : ScopeGuard(std::move(scope), false) {}

ScopeGuard::~ScopeGuard() {
  if (begins_) scope_->End();
  if (frame_) Leave();
}

void ScopeGuard::Leave() {
  auto& stack = Stack();
  const bool newest = !stack.empty() && stack.back() == frame_;
  frame_->over = true;
  stack.erase(std::remove(stack.begin(), stack.end(), frame_), stack.end());
  if (newest) return;
  // What the code under this guard wrote last may have entered another scope, or none.
  if (scope_) scope_->MarkIncomplete("", "out_of_order");
  Count("scope_out_of_order");
  WarnOnce("scope_out_of_order", "", "",
           "a guard of a scope ended on another thread than it began on, or before a guard that began after it: its "
           "scope is marked incomplete; a coroutine must hold no guard over a co_await");
}

std::shared_ptr<Scope> CurrentScope() {
  const auto& stack = ScopeGuard::Stack();
  return stack.empty() ? nullptr : stack.back()->scope;
}

Captured Capture() {
  Captured captured;
  captured.scope_ = CurrentScope();
  return captured;
}

Fulfilling::Fulfilling(const Promise& promise) : branch_(CurrentScope(), promise), guard_(branch_.scope()) {}
Fulfilling::Fulfilling(std::string_view token) : Fulfilling(PromiseOf(token)) {}

Branch::Branch(std::shared_ptr<Scope> around, Promise promise)
    : promise_(std::move(promise)), outer_(std::move(around)) {
  if (!outer_) return;
  inner_ = std::make_shared<Scope>();
  Scope::Inside& outer = outer_->inside();
  Scope::Inside& inner = inner_->inside();
  const std::lock_guard guard(outer.lock);
  inner.own = outer.own;
  inner.own.insert(PromiseName(promise_.datastore, promise_.id));
  inner.answered = outer.answered;
  inner.came = outer.came;
  inner.lineage = outer.lineage.WithoutPromises(inner.own);
  inner.running = outer.running;
  inner.allowance = outer.Allowed();
  std::set<std::string> ids;
  for (const std::string& name : inner.own) ids.insert(name.substr(0, kPromiseIdLength));
  for (const auto& [kind, each] : outer.attached) {
    if (const auto branched = each->Branched(ids)) inner.attached[kind] = branched;
  }
}

Branch::~Branch() {
  if (!inner_) return;
  if (inner_->stopped()) {
    outer_->Stop();
    return;
  }
  inner_->End();
  Scope::Inside& inner = inner_->inside();
  Lineage gathered;
  std::map<std::type_index, std::shared_ptr<const Attachment>> attached;
  {
    const std::lock_guard guard(inner.lock);
    inner.joined = outer_;
    gathered = inner.lineage;
    attached = inner.attached;
  }
  outer_->Merge(gathered);
  for (const auto& [kind, each] : attached) outer_->inside().Attach(each);
}

std::string TokenOf(const Promise& promise) { return Lineage(LineageParts{{}, {}, {promise}, 0, {}}).Serialize(); }

Promise PromiseOf(std::string_view token) {
  const Lineage lineage = Lineage::Deserialize(token);
  const auto promises = lineage.promises();
  if (promises.size() != 1 || TokenOf(promises[0]) != token) {
    throw LineageDecodeError({"lineage_item", "a promise's token is the text of a lineage that holds it alone", 0});
  }
  return promises[0];
}

void Unscoped(const char* what, std::string_view datastore, std::optional<Policy> policy) {
  if (Disabled()) return;
  Count(std::string("unscoped_") + what, datastore);
  const std::string link = std::string_view(what) == "read" ? " of '" : " to '";
  const std::string about = datastore.empty() ? "" : link + std::string(datastore) + "'";
  const std::string site = CallSite();
  const std::string message = what + about + " in " + site + " outside of a scope: begin one with antipode::ScopeGuard";
  if (policy == Policy::kRaise && !DryRunNow()) {
    throw ConfigurationError(message);
  }
  WarnOnce(std::string("unscoped_") + what, datastore, site, message);
}

void Stop() {
  if (const auto scope = CurrentScope()) scope->Stop();
}

Lineage Current() {
  const auto scope = CurrentScope();
  return scope ? scope->lineage() : Lineage();
}

Lineage Append(const WriteId& write) {
  if (const auto scope = CurrentScope()) return scope->Append(write);
  Unscoped("append", write.datastore, CurrentSettings().on_unscoped);
  return Lineage({write});
}

Lineage Remove(const WriteId& write) {
  const auto scope = CurrentScope();
  return scope ? scope->Remove(write) : Lineage();
}

Lineage Transfer(const Lineage& lineage) {
  const Lineage received = ReceivedLineage(lineage);
  if (const auto scope = CurrentScope()) return scope->Merge(received);
  Unscoped("transfer", "", CurrentSettings().on_unscoped);
  return received;
}

Lineage Transfer(std::string_view text) { return Transfer(Lineage::Deserialize(text)); }

std::string Serialize() {
  const auto scope = CurrentScope();
  return scope ? scope->text() : LeavingText(Lineage());
}

std::string Serialize(const Lineage& lineage) { return LeavingText(lineage); }

void RecordWrite(const WriteId& write) {
  if (const auto scope = CurrentScope()) {
    scope->Append(write);
  } else {
    Unscoped("write", write.datastore, CurrentSettings().on_unscoped);
  }
}

void RecordUnlabelled(const std::string& datastore) {
  if (const auto observer = DryRunNow()) observer->Unlabelled(CurrentScope().get(), datastore);
}

void MarkIncomplete(std::string_view subject, std::string_view reason) {
  Count("incomplete", subject);
  if (const auto scope = CurrentScope()) scope->MarkIncomplete(subject, reason);
}

}  // namespace antipode
