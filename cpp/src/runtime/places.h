// Lines of the application's code.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/call_stack.h"

namespace antipode {

struct Place {
  std::string file;  ///< Relative to the working directory where it is below it; the program's name where no more is
                     ///< known.
  int line = 0;      ///< From 1; 0 where it is not known.
  std::string function;
};

/// One call of a stack, as the program's symbols and debug information have it.
struct Frame {
  std::string file;      ///< Of the source; empty where it is not known.
  int line = 0;          ///< Of the source.
  std::string function;  ///< With its namespaces; empty where it is not known.
  std::string object;    ///< The program or library that it lies in.
  std::string offset;    ///< Where, in that.
  bool library = false;  ///< Whether it is this library's code, or may be, as far as its address says.
};

/// The calls at an address, the innermost first: of inlined functions as well.
std::vector<Frame> FramesAt(std::uintptr_t address);
/// A function's name, without its parameters and those of templates; of a lambda that of the function it is in.
std::string PlainName(const std::string& name);
/// Of a symbol with a lambda among its template arguments, the function that the lambda is written in; else empty.
std::string FunctionOfLambda(const std::string& name);
/// Whether a file or a library is where packages are installed.
bool IsInstalled(std::string_view file);

/// The places that were met, found by their addresses. Thread-safe.
class Places {
 public:
  /// Namespaces that are the application's wherever they are.
  explicit Places(std::optional<std::set<std::string>> packages);
  /// The nearest call that is the application's; without one the outermost of the program.
  Place Of(const CallStack& stack);

 private:
  /// A call, and whether it is the application's.
  struct Met {
    Place place;
    bool own = false;
    bool installed = false;  ///< It lies in a library of the system's.
  };
  /// Under the lock.
  const std::vector<Met>& At(std::uintptr_t address);
  [[nodiscard]] bool IsOwn(const Frame& frame) const;
  [[nodiscard]] Place PlaceOf(const Frame& frame) const;

  std::optional<std::set<std::string>> packages_;
  std::string here_;  ///< The working directory, with a slash at its end.
  std::string program_;
  std::string source_;  ///< Where the library's own source lies; empty where that is not known.
  std::map<std::uintptr_t, std::vector<Met>> met_;
};

/// Where the application is, for messages: a function with its file and line, as far as these are known.
std::string CallSite();

}  // namespace antipode
