// What a callback, or a shim of somebody else's, may throw: anything.
#pragma once

#include <cxxabi.h>

#include <exception>
#include <string>

namespace antipode {

/// What the exception says that is being handled. The end of a thread (pthread_exit) goes on.
inline std::string Thrown() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return "what was thrown is no std::exception";
  }
}

}  // namespace antipode
