// Threads and processes that end while guards live: what they hold can be used until the end. ends_program WAY
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "antipode/observer.h"
#include "antipode/scope.h"

namespace {

using antipode::ScopeGuard;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  _exit(1);
}

void Write() { antipode::RecordWrite({"posts", "log", std::uint64_t{1}}); }

/// What an application keeps for each thread, or for the process. Nothing of ours was used before it is made.
struct Kept {
  std::unique_ptr<ScopeGuard> guard;
  ~Kept() {
    if (!guard) return;
    const auto scope = guard->scope();
    Require(antipode::CurrentScope() == scope, "the scope is current while its guard lives");
    Write();
    Require(antipode::Current().writes().size() == 1, "a write enters it");
    guard.reset();
    Require(antipode::CurrentScope() == nullptr, "no scope is current after its guard");
    Require(scope->lineage().incomplete().empty(), "the guard ended in order");
  }
};

/// Ends last of all: it is made first.
struct Last {
  ~Last() {
    Require(antipode::Current().empty() == !inside, "what is current at the end of the process");
    Write();
    antipode::Lineage copy = antipode::Lineage().Append({"posts", "log", std::uint64_t{2}});
    Require(!copy.empty() && antipode::Lineage().empty(), "lineages can be made at the end of the process");
  }
  bool inside = false;
};

Last last;
Kept kept;
thread_local Kept kept_by_thread;

void Keep(Kept& in) { in.guard = std::make_unique<ScopeGuard>(); }

}  // namespace

int main(int, char** arguments) {
  const std::string way = arguments[1];
  if (way == "thread") std::thread([] { Keep(kept_by_thread); }).join();
  if (way == "main") Keep(kept_by_thread);
  if (way == "static") Keep(kept);
  if (way == "exit") {
    const ScopeGuard guard;
    Write();
    last.inside = true;
    std::exit(0);
  }
  return 0;
}
