#include "budgets/counting.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdlib>

// Where the library's functions are in this executable, as the linker says it (see src/runtime/frames.cc).
[[gnu::weak, gnu::visibility("hidden")]] extern const char __start_antipode_text[];
[[gnu::weak, gnu::visibility("hidden")]] extern const char __stop_antipode_text[];
extern "C" [[gnu::visibility("hidden")]] const char __executable_start[];

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
}

namespace antipode::budgets {
namespace {

struct Event {
  const char* what;
  std::uintptr_t place;
};

std::array<Event, 65'536> events;
std::atomic<std::size_t> seen{0};
std::atomic<bool> counting{false};
/// Whether this thread is not counted: whoever looks for its callers may allocate.
thread_local bool noting = false;

_Unwind_Reason_Code Step(_Unwind_Context* context, void* found) {
  const std::uintptr_t address = _Unwind_GetIP(context) - 1;
  if (address < reinterpret_cast<std::uintptr_t>(__start_antipode_text) ||
      address >= reinterpret_cast<std::uintptr_t>(__stop_antipode_text)) {
    return _URC_NO_REASON;
  }
  *static_cast<std::uintptr_t*>(found) = address - reinterpret_cast<std::uintptr_t>(__executable_start);
  return _URC_END_OF_STACK;
}

void Note(const char* what) noexcept {
  if (!counting.load(std::memory_order_relaxed) || noting) return;
  noting = true;
  std::uintptr_t place = 0;
  _Unwind_Backtrace(Step, &place);
  const std::size_t nth = seen.fetch_add(1);
  if (nth >= events.size()) std::abort();
  events[nth] = {what, place};
  noting = false;
}

/// The function that one of this executable stands before.
template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

void Begin() noexcept {
  seen = 0;
  counting = true;
}

Counts End() {
  counting = false;
  Counts counts;
  for (std::size_t nth = 0; nth < seen; ++nth) ++counts[{events[nth].what, events[nth].place}];
  return counts;
}

Uncounted::Uncounted() noexcept { noting = true; }

Uncounted::~Uncounted() { noting = false; }

}  // namespace antipode::budgets

// Of this executable and of every library that it loads: the first definition is taken.
extern "C" {

void* malloc(std::size_t size) {
  antipode::budgets::Note("allocations");
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  antipode::budgets::Note("allocations");
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  antipode::budgets::Note("allocations");
  return __libc_realloc(memory, size);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* given) noexcept {
  antipode::budgets::Note("threads");
  static const auto next = antipode::budgets::Next<decltype(pthread_create)>("pthread_create");
  return next(thread, attributes, start, given);
}

#define ANTIPODE_COUNTED(result, name, parameters, arguments, throws)           \
  result name parameters throws {                                               \
    antipode::budgets::Note("system calls: " #name);                            \
    static const auto next = antipode::budgets::Next<result parameters>(#name); \
    return next arguments;                                                      \
  }
ANTIPODE_COUNTED(int, close, (int fd), (fd), noexcept(false))
ANTIPODE_COUNTED(int, connect, (int fd, const sockaddr* to, socklen_t size), (fd, to, size), noexcept(false))
ANTIPODE_COUNTED(int, getsockopt, (int fd, int level, int name, void* value, socklen_t* size),
                 (fd, level, name, value, size), noexcept)
ANTIPODE_COUNTED(int, poll, (pollfd * all, nfds_t count, int timeout_ms), (all, count, timeout_ms), noexcept(false))
ANTIPODE_COUNTED(int, pthread_sigmask, (int how, const sigset_t* set, sigset_t* before), (how, set, before), noexcept)
ANTIPODE_COUNTED(ssize_t, read, (int fd, void* into, std::size_t size), (fd, into, size), noexcept(false))
ANTIPODE_COUNTED(ssize_t, recv, (int fd, void* into, std::size_t size, int flags), (fd, into, size, flags),
                 noexcept(false))
ANTIPODE_COUNTED(ssize_t, recvmsg, (int fd, msghdr* into, int flags), (fd, into, flags), noexcept(false))
ANTIPODE_COUNTED(ssize_t, send, (int fd, const void* from, std::size_t size, int flags), (fd, from, size, flags),
                 noexcept(false))
ANTIPODE_COUNTED(ssize_t, sendmsg, (int fd, const msghdr* from, int flags), (fd, from, flags), noexcept(false))
ANTIPODE_COUNTED(int, setsockopt, (int fd, int level, int name, const void* value, socklen_t size),
                 (fd, level, name, value, size), noexcept)
ANTIPODE_COUNTED(int, sigpending, (sigset_t * set), (set), noexcept)
ANTIPODE_COUNTED(int, sigtimedwait, (const sigset_t* set, siginfo_t* info, const timespec* timeout),
                 (set, info, timeout), noexcept(false))
ANTIPODE_COUNTED(int, socket, (int domain, int type, int protocol), (domain, type, protocol), noexcept)
ANTIPODE_COUNTED(ssize_t, write, (int fd, const void* from, std::size_t size), (fd, from, size), noexcept(false))
ANTIPODE_COUNTED(ssize_t, writev, (int fd, const iovec* parts, int count), (fd, parts, count), noexcept(false))
#undef ANTIPODE_COUNTED
}
