// For shims: how the library waits at a socket, and writes to one.
#pragma once

#include <csignal>

#include "antipode/export.h"

namespace antipode {

/// Waits until one of the events of poll(2) has come to a socket, or the socket ended; at the latest until `deadline_s`
/// of SystemClock(). Which have come, as poll(2) reports them; 0 at the deadline, and where the system cannot wait. A
/// signal neither ends nor prolongs it.
ANTIPODE_EXPORT short AwaitSocket(int socket, short events, double deadline_s);

/// As long as it lives, a write of this thread to a socket that ended fails (EPIPE) and raises no SIGPIPE. For clients
/// that write without MSG_NOSIGNAL. Ended on the thread on which it began. One within another costs nothing: a batch of
/// calls has one around it.
class ANTIPODE_EXPORT WithoutSigpipe {
 public:
  WithoutSigpipe() noexcept;
  ~WithoutSigpipe();
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t before_;
  bool pending_;
};

}  // namespace antipode
