// How the library waits at a socket, and writes to one, while signals come.
#include "antipode/sockets.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "antipode/clock.h"
#include "silent_server.h"

namespace antipode {
namespace {

class Pair {
 public:
  Pair() { socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()); }
  ~Pair() {
    for (const int each : ends_) close(each);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  [[nodiscard]] int here() const { return ends_[0]; }
  [[nodiscard]] int there() const { return ends_[1]; }

 private:
  std::array<int, 2> ends_{-1, -1};
};

bool IsPending(int signal) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, signal) == 1;
}

// A signal neither ends a wait nor lets it last beyond its deadline.
TEST(AwaitSocket, EndsAtItsDeadlineHoweverManySignalsCome) {
  const Pair pair;
  short come = -1;
  double late_s = -1;
  EXPECT_TRUE(EndsUnderSignals(
      [&] {
        const double deadline_s = SystemClock().Now() + 0.1;
        come = AwaitSocket(pair.here(), POLLIN, deadline_s);
        late_s = SystemClock().Now() - deadline_s;
      },
      [&] { shutdown(pair.there(), SHUT_RDWR); }));
  EXPECT_EQ(come, 0);
  EXPECT_GE(late_s, 0) << "no signal was taken for an event";
}

// What has come, and that the other side ended, ends a wait.
TEST(AwaitSocket, EndsWithWhatCame) {
  const Pair pair;
  const double deadline_s = SystemClock().Now() + 20;
  EXPECT_EQ(AwaitSocket(pair.here(), POLLOUT, deadline_s), POLLOUT);
  ASSERT_EQ(write(pair.there(), "x", 1), 1);
  EXPECT_EQ(AwaitSocket(pair.here(), POLLIN, deadline_s), POLLIN);
  shutdown(pair.there(), SHUT_RDWR);
  EXPECT_NE(AwaitSocket(pair.here(), POLLIN, deadline_s) & POLLHUP, 0);
}

// A write to a socket that ended leaves no signal, and none is blocked afterwards.
TEST(WithoutSigpipe, LetsAWriteFailWithoutASignal) {
  const Pair pair;
  shutdown(pair.here(), SHUT_RDWR);
  {
    const WithoutSigpipe quiet;
    EXPECT_EQ(write(pair.here(), "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
  }
  EXPECT_FALSE(IsPending(SIGPIPE));
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGPIPE), 0);
}

// One within another ends with the outer one.
TEST(WithoutSigpipe, HoldsAfterOneWithinIt) {
  const Pair pair;
  shutdown(pair.here(), SHUT_RDWR);
  {
    const WithoutSigpipe quiet;
    { const WithoutSigpipe within; }
    EXPECT_EQ(write(pair.here(), "x", 1), -1);
  }
  EXPECT_FALSE(IsPending(SIGPIPE));
}

// A signal that the application held back before is still there afterwards.
TEST(WithoutSigpipe, LeavesAnApplicationsOwnSignal) {
  sigset_t only;
  sigset_t before;
  sigemptyset(&only);
  sigaddset(&only, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &only, &before);
  raise(SIGPIPE);
  { const WithoutSigpipe quiet; }
  EXPECT_TRUE(IsPending(SIGPIPE));
  const timespec now{0, 0};
  sigtimedwait(&only, nullptr, &now);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace antipode
