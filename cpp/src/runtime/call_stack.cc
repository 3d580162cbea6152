#include "runtime/call_stack.h"

#include <unwind.h>

namespace antipode {
namespace {

/// Deeper calls than these are of no use, and may be a recursion.
constexpr std::size_t kDeepest = 128;

_Unwind_Reason_Code Step(_Unwind_Context* context, void* found) {
  auto& stack = *static_cast<CallStack*>(found);
  int interrupted = 0;
  const std::uintptr_t address = _Unwind_GetIPInfo(context, &interrupted);
  if (address == 0 || stack.size() >= kDeepest) return _URC_END_OF_STACK;
  stack.push_back(interrupted != 0 ? address : address - 1);
  return _URC_NO_REASON;
}

}  // namespace

CallStack CurrentCallStack() {
  CallStack stack;
  stack.reserve(kDeepest / 4);
  _Unwind_Backtrace(Step, &stack);
  return stack;
}

}  // namespace antipode
