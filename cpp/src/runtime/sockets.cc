#include "antipode/sockets.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>

#include "antipode/clock.h"

namespace antipode {
namespace {

/// The longest that one call of poll(2) may take: its argument is an int of milliseconds.
constexpr double kLongestS = 3'600;

sigset_t Sigpipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  return signals;
}

}  // namespace

short AwaitSocket(int socket, short events, double deadline_s) {
  while (true) {
    const double left_s = deadline_s - SystemClock().Now();
    if (left_s <= 0) return 0;
    pollfd waited{socket, events, 0};
    const int found = poll(&waited, 1, static_cast<int>(std::ceil(std::min(left_s, kLongestS) * 1'000)));
    if (found > 0) return waited.revents;
    if (found < 0 && errno != EINTR) return 0;
  }
}

namespace {

/// How many of this thread live.
thread_local int nested = 0;

}  // namespace

WithoutSigpipe::WithoutSigpipe() noexcept : before_(), pending_(false) {
  if (++nested > 1) return;
  const sigset_t blocked = Sigpipe();
  sigset_t pending;
  if (sigpending(&pending) == 0) pending_ = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

WithoutSigpipe::~WithoutSigpipe() {
  if (--nested > 0) return;
  // One that was pending before is not of ours.
  const sigset_t blocked = Sigpipe();
  const timespec now{0, 0};
  if (!pending_) sigtimedwait(&blocked, nullptr, &now);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace antipode
