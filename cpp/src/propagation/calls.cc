// One outgoing HTTP request while a client waits for its answer.
#include <mutex>
#include <set>
#include <unordered_map>

#include "antipode/settings.h"
#include "antipode/text.h"
#include "propagation/headers.h"
#include "request/inside.h"
#include "request/untrusted_text.h"
#include "runtime/dry_run.h"
#include "runtime/forks.h"
#include "runtime/hosts.h"
#include "runtime/observers.h"

namespace antipode {
namespace {

constexpr std::size_t kMostPeers = 10'000;
constexpr int kTimeout = 408;
constexpr int kFirstErrorOfServers = 500;

/// Says that nothing was executed: the request goes elsewhere, or was refused before any of the service's code ran.
bool NotExecuted(int status) {
  static const auto& kStatuses =
      *new std::set<int>{300, 301, 304, 305, 307, 308, 400, 401, 403, 404, 405, 406, 407, 410, 411,
                         413, 414, 415, 416, 417, 421, 425, 426, 428, 429, 431, 451, 501, 505};
  return kStatuses.count(status) != 0;
}

std::optional<unsigned> UsualPort(std::string_view scheme) {
  if (scheme == "http") return 80U;
  if (scheme == "https") return 443U;
  return std::nullopt;
}

/// One spelling for each host: in lower case, and with an IPv6 address in brackets.
std::string Spelled(std::string_view host) {
  std::string name = text::Lower(host);
  return name.find(':') == std::string::npos || name[0] == '[' ? name : "[" + name + "]";
}

/// Of each peer whether it ever answered with a lineage; one without an answer is missing.
struct Peers {
  std::mutex lock;
  std::unordered_map<std::string, bool> answers;
};

Peers& ThePeers() {
  static auto* peers = [] {
    auto* made = new Peers;
    HoldWhileForking(ForkRank::kPeers, made->lock);
    return made;
  }();
  return *peers;
}

/// One answer with a lineage outweighs all without.
void Note(const std::string& peer, bool speaks) {
  Peers& peers = ThePeers();
  const std::lock_guard guard(peers.lock);
  if (peers.answers.size() >= kMostPeers) peers.answers.clear();  // Known peers are soon known again.
  bool& known = peers.answers[peer];
  known = known || speaks;
}

}  // namespace

std::string Together(const Scope& scope, const std::string& text, const std::vector<std::string>& there) {
  bool more = false;
  Lineage together = scope.inside().Branching();
  for (const std::string& other : there) {
    if (other == text) continue;
    together = together.Merge(Readable(kBaggage, other));
    more = true;
  }
  if (!more) return text;
  const auto observer = DryRunNow();
  return LeavingText(together, observer ? observer->Notes(scope) : std::set<std::string>());
}

OutgoingCall::OutgoingCall(std::string_view scheme, std::string_view host, std::optional<unsigned> port,
                           std::string_view path, std::string_view service) {
  const auto usual = UsualPort(scheme);
  std::string named = Spelled(host);
  if (port && port != usual) named += ":" + std::to_string(*port);
  if (!port) port = usual;
  service_ = service.empty() ? named : std::string(service);
  peer_ = std::string(scheme) + "://" + named;
  Begin({{std::string(host), port}}, path);
}

OutgoingCall::OutgoingCall(const CallTarget& target) : service_(target.service), peer_(target.peer) {
  std::vector<std::pair<std::string, std::optional<unsigned>>> hosts;
  for (const std::string& host : target.hosts) hosts.emplace_back(host, std::nullopt);
  if (hosts.empty()) hosts.emplace_back();
  Begin(hosts, target.path);
}

void OutgoingCall::Begin(const std::vector<std::pair<std::string, std::optional<unsigned>>>& hosts,
                         std::string_view path) {
  if (Disabled()) return;
  const Settings settings = CurrentSettings();
  const auto& [first, first_port] = hosts.front();
  const auto [answers, above] = hosts::Expected(settings.peers, first, first_port, path);
  expected_ = answers;
  peer_ += above;
  for (const auto& [host, port] : hosts) {
    allowed_ = allowed_ && (!settings.egress_hosts || hosts::Names(*settings.egress_hosts, host, port));
  }
  if (allowed_) scope_ = CurrentScope();
  if (scope_) text_ = scope_->text();
}

void OutgoingCall::Outfit(Headers& headers) const {
  if (Disabled()) return;
  std::string given;
  for (const std::string_view value : ValuesOf(headers, kBaggage)) {
    if (!given.empty()) given += ',';
    given += value;
  }
  if (!allowed_) {
    Strip(headers);
    return;
  }
  if (scope_) {
    const auto there = Members({given});
    if (there != std::vector<std::string>{text_}) {
      given = WithMember(given, Together(*scope_, text_, there));
      Replace(headers, kBaggage, given);
    }
  }
  if (HasMember(given)) Replace(headers, kSentHeader, "1");
}

void OutgoingCall::Answered(int status, std::optional<std::string_view> lineage) {
  if (Disabled() || !allowed_) return;
  if (lineage) {
    Note(peer_, true);
    for (const std::string_view text : text::Split(*lineage, ',')) Merge(text::Trimmed(text));
  } else if (text_.empty() || NotExecuted(status)) {
    return;
  } else if (status >= 200 && status < 300) {
    AnsweredWithout(true);
  } else if (status == kTimeout || status >= kFirstErrorOfServers) {
    Failed();
  } else {
    AnsweredWithout(false);
  }
}

void OutgoingCall::AnsweredWithout(bool success) {
  if (Disabled() || !allowed_ || text_.empty()) return;
  if (TakesPart() == true) {
    Mark();
  } else if (success) {
    Note(peer_, false);
  }
}

bool OutgoingCall::MayBeInDoubt() const { return scope_ && !Disabled() && TakesPart() != false; }

void OutgoingCall::Failed() {
  if (MayBeInDoubt()) Mark();
}

void OutgoingCall::Merge(std::string_view text) {
  ExtractResponse({{std::string(kResponseHeader), std::string(text)}}, service_, scope_.get());
}

std::optional<bool> OutgoingCall::TakesPart() const {
  if (expected_ != Answers::kAuto) return expected_ == Answers::kAlways;
  Peers& peers = ThePeers();
  const std::lock_guard guard(peers.lock);
  const auto known = peers.answers.find(peer_);
  return known == peers.answers.end() ? std::nullopt : std::optional(known->second);
}

void OutgoingCall::Mark() {
  if (!scope_ || Disabled()) return;
  Count("incomplete", service_);
  scope_->MarkIncomplete(service_, "in_doubt");
  WarnOnce("call_in_doubt", service_, "",
           "the outcome of a call of '" + service_ + "' is not known: the lineage is incomplete");
}

void ForgetServices() {
  Peers& peers = ThePeers();
  const std::lock_guard guard(peers.lock);
  peers.answers.clear();
}

}  // namespace antipode
