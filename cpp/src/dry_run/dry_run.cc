#include "dry_run/dry_run.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "antipode/members.h"
#include "barrier/registry.h"
#include "dry_run/json.h"
#include "dry_run/running_test.h"
#include "request/open_writes.h"
#include "runtime/observers.h"
#include "runtime/settings.h"

namespace antipode {

std::shared_ptr<DryRunObserver> MakeDryRun(const Settings& settings) {
  static const int at_exit = std::atexit([] {
    if (const auto observer = DryRunNow()) observer->Close();
  });
  static_cast<void>(at_exit);
  return std::make_shared<dry_run::DryRun>(settings);
}

}  // namespace antipode

namespace antipode::dry_run {
namespace {

/// How many of the writes that a read may miss are said.
constexpr std::size_t kSaid = 3;
/// How long the end of a dry run waits for servers that were asked what they are, in seconds.
constexpr double kRolesS = 2;

std::vector<Dependency> ExactOf(const Lineage& known, const std::string& datastore) {
  std::vector<Dependency> exact;
  for (const WriteId& write : known.writes()) {
    if (!write.covering && write.datastore == datastore) exact.emplace_back(write);
  }
  for (const Promise& promise : known.promises()) {
    if (promise.datastore == datastore) exact.emplace_back(promise);
  }
  return exact;
}

std::string Member(const char* name, std::string_view value) {
  return std::string("\"") + name + "\":" + json::Text(value);
}

std::string LintOf(const char* lint, std::string_view datastore, std::string_view detail) {
  return Member("lint", lint) + "," + Member("datastore", datastore) + "," + Member("detail", detail);
}

}  // namespace

DryRun::DryRun(const Settings& settings) : region_(settings.region.value_or("")), places_(settings.app_packages) {
  if (settings.dry_run_dir) records_ = std::make_shared<Records>(*settings.dry_run_dir, settings.region);
}

void DryRun::Opened(const Scope& scope, bool incoming) {
  evidence_->Over();
  const auto place = incoming ? std::nullopt : std::optional(Here());
  Record("scope", &scope, place ? &*place : nullptr, Member("opened", incoming ? "incoming" : "here"));
}

void DryRun::Wrote(const Scope& scope, const Dependency& write, bool late) {
  evidence_->Over();
  const auto* id = std::get_if<WriteId>(&write);
  if (id != nullptr && id->covering) return;
  const Place place = Here();
  Record("write", &scope, &place, "\"write\":" + json::Write(write));
  if (late) Lint("after-response", DatastoreOf(write), "", &scope, place);
}

void DryRun::Reads(const Scope& scope, Store& client, bool automatic) {
  evidence_->Over();
  const bool declared = client.reads_from() == ReadsFrom::kReplica;
  if (!declared && roles_.Known(client)) return;
  const std::string& datastore = client.datastore();
  const auto exact = ExactOf(scope.lineage(), datastore);
  if (exact.empty()) return;
  if (!declared) return AskRole(scope, client);
  const auto notes = dry_run::Notes::Of(scope);
  std::vector<Dependency> missed;
  std::copy_if(exact.begin(), exact.end(), std::back_inserter(missed),
               [&](const Dependency& each) { return !notes->Covers(region_, each); });
  const char* verdict = missed.empty() ? "guarded" : automatic ? "automatic" : "unguarded";
  const Place place = Here();
  const int number = Record("read", &scope, &place,
                            Member("datastore", datastore) + "," + Member("verdict", verdict) +
                                ",\"writes\":" + json::Writes(missed.empty() ? exact : missed));
  if (!missed.empty() && !automatic) Found(datastore, place, missed);
  if (!missed.empty() && number != kUnwritten) LookInto(client, place, missed, number);
}

void DryRun::AskRole(const Scope& scope, Store& client) {
  if (!records_) return;
  const Place place = Here();
  const std::string about = About(&scope, &place) + LintOf("undeclared-replica", client.datastore(), "");
  roles_.Ask(client, [records = records_, about] { records->Put("lint", about); });
}

void DryRun::Found(const std::string& datastore, const Place& place, const std::vector<Dependency>& missed) {
  Count("unguarded_read", datastore);
  const std::string line = place.file + ":" + std::to_string(place.line);
  std::string writes;
  for (std::size_t i = 0; i < std::min(missed.size(), kSaid); ++i) writes += " " + json::Write(missed[i]);
  WarnOnce("unguarded_read", datastore, line + " " + place.function,
           line + " in " + place.function + " reads '" + datastore +
               "' without a barrier for what its request wrote there:" + writes);
}

void DryRun::LookInto(Store& client, const Place& place, const std::vector<Dependency>& missed, int number) {
  const auto test = RunningTest();
  std::string about = test ? Member("test", *test) + "," : "";
  about += "\"of\":" + std::to_string(number);
  const auto found = [about, evidence = std::weak_ptr(evidence_), records = records_](
                         StalenessCheck& ended, bool confirmed, std::optional<double> waited_s) {
    records->Put("evidence", about + ",\"confirmed\":" + (confirmed ? "true" : "null") +
                                 ",\"waited_s\":" + json::Seconds(waited_s));
    if (const auto held = evidence.lock()) held->Ended(ended);
  };
  const auto check = StalenessCheck::Of(client, missed, found);
  if (check && evidence_->Wants({client.datastore(), place.file, place.line})) evidence_->Seek(check);
}

void DryRun::Succeeds(const BarrierSeen& barrier) {
  evidence_->Over();
  if (barrier.scope != nullptr && !barrier.guards.empty()) {
    const auto notes = dry_run::Notes::Of(*barrier.scope);
    for (const Dependency& each : barrier.guards) notes->Guard(region_, each);
  }
  const Place place = places_.Of(barrier.called);
  Record("barrier", barrier.scope, &place,
         "\"guards\":" + json::Writes(barrier.guards) + "," + Member("at", barrier.at_read ? "read" : "now") +
             ",\"only\":" + (barrier.only ? json::Texts(*barrier.only) : "null") +
             ",\"exclude\":" + json::Texts(barrier.exclude) + ",\"dry\":" + (barrier.dry ? "true" : "false"));
  if (!barrier.nothing) return;
  Lint("nothing-to-wait-for", "", barrier.empty ? "its lineage is empty" : "nothing of it can be waited for",
       barrier.scope, place);
}

void DryRun::Counted(std::string_view metric, std::string_view subject) {
  if (metric == "unscoped_read" || metric == "unscoped_write") {
    evidence_->Over();
    Lint(metric == "unscoped_read" ? "unscoped-read" : "unscoped-write", subject, "", nullptr, Here());
    return;
  }
  // What is unreadable elsewhere was no read.
  if (subject == kBaggage || registry::StoresOf(std::string(subject)).empty()) return;
  Lint("unknown-lineage", subject, metric == "companion_absent" ? "absent" : metric, CurrentScope().get(), Here());
}

void DryRun::BeforeCommit(const Scope& scope, const std::string& what, const std::string& datastore,
                          const CallStack& wrote) {
  const Place place = places_.Of(wrote);
  const std::string detail = what + ", written at " + place.file + ":" + std::to_string(place.line);
  Lint("read-before-commit", datastore, detail, &scope, Here());
}

void DryRun::Unlabelled(const Scope* scope, const std::string& datastore) {
  Lint("message-without-lineage", datastore, "", scope, Here());
}

void DryRun::Leaves(const Scope& scope) {
  std::set<std::string> open;
  for (const OpenWrite& each : OpenIn(scope)) open.insert(each.datastore);
  if (open.empty()) return;
  const Place place = Here();
  for (const std::string& datastore : open) Lint("in-transaction", datastore, "", &scope, place);
}

Lineage DryRun::Absorb(const Scope& scope, const Lineage& lineage) {
  dry_run::Notes::Of(scope)->Take(lineage.unknown());
  return lineage.WithoutNotes();
}

std::set<std::string> DryRun::Notes(const Scope& scope) {
  evidence_->Over();
  return dry_run::Notes::Of(scope)->Items(SettingsInForce()->egress);
}

void DryRun::Settle(double timeout_s) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  evidence_->Settle(timeout_s);
  const std::chrono::duration<double> left = until - std::chrono::steady_clock::now();
  roles_.Settle(left.count());
}

void DryRun::Close() {
  evidence_->Close();
  roles_.Settle(kRolesS);
  if (records_) records_->Close();
}

Place DryRun::Here() { return places_.Of(CurrentCallStack()); }

void DryRun::Lint(const char* lint, std::string_view datastore, std::string_view detail, const Scope* scope,
                  const Place& place) {
  Record("lint", scope, &place, LintOf(lint, datastore, detail));
}

int DryRun::Record(std::string_view kind, const Scope* scope, const Place* place, const std::string& about) {
  return records_ ? records_->Put(kind, About(scope, place) + about) : kUnwritten;
}

std::string DryRun::About(const Scope* scope, const Place* place) {
  const std::string request = scope == nullptr ? "null" : "\"" + dry_run::Notes::Of(*scope)->Request() + "\"";
  std::string members = "\"request\":" + request + ",";
  if (const auto test = RunningTest()) members += Member("test", *test) + ",";
  if (place != nullptr) members += "\"site\":" + json::Site(*place) + ",";
  return members;
}

}  // namespace antipode::dry_run
