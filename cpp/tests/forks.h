// A service that forks while it waits, and in both processes goes on to write, wait and read.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "antipode/barrier.h"
#include "antipode/scope.h"

namespace antipode::checks {

inline BarrierOptions Patient() {
  BarrierOptions options;
  options.timeout = std::chrono::seconds(10);
  return options;
}

/// Whether what is written at the primary is read at the replica after a barrier.
template <typename Shim>
bool IsRead(Shim& near, Shim& far, const std::string& key) {
  const ScopeGuard request;
  near.Write(key, "new");
  return TryBarrier(Patient()) && far.Read(key).value == "new";
}

/// Whether a parent, which waits meanwhile, and its child read what they wrote.
template <typename Shim>
bool ForksWell(Shim& near, Shim& far) {
  if (!IsRead(near, far, "before")) return false;
  const ScopeGuard request;
  near.Write("meanwhile", "new");
  auto waiting = BarrierAsync(Patient());
  const pid_t child = fork();
  if (child == 0) _exit(IsRead(near, far, "child") && IsRead(near, far, "child again") ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 && waiting.get().ok() && IsRead(near, far, "after");
}

}  // namespace antipode::checks
