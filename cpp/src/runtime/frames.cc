// What the program's symbols and debug information say of an address.
#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <vector>

#include "antipode/text.h"
#include "runtime/forks.h"
#include "runtime/places.h"

#ifdef ANTIPODE_BACKTRACE
// Of libbacktrace, whose header only GCC finds: these have not changed since 2012.
extern "C" {
struct backtrace_state;
using backtrace_error_callback = void (*)(void* data, const char* message, int number);
using backtrace_full_callback = int (*)(void* data, std::uintptr_t address, const char* file, int line,
                                        const char* function);
using backtrace_syminfo_callback = void (*)(void* data, std::uintptr_t address, const char* name, std::uintptr_t value,
                                            std::uintptr_t size);
backtrace_state* backtrace_create_state(const char* program, int threaded, backtrace_error_callback error, void* data);
int backtrace_pcinfo(backtrace_state* state, std::uintptr_t address, backtrace_full_callback callback,
                     backtrace_error_callback error, void* data);
int backtrace_syminfo(backtrace_state* state, std::uintptr_t address, backtrace_syminfo_callback callback,
                      backtrace_error_callback error, void* data);
}
#endif

extern "C" {
// The linker's: where the library's own code lies, which the build puts into a section. A stripped program has it, too.
// NOLINTBEGIN(bugprone-reserved-identifier)
[[gnu::weak, gnu::visibility("hidden")]] extern const char __start_antipode_text[];
[[gnu::weak, gnu::visibility("hidden")]] extern const char __stop_antipode_text[];
// NOLINTEND(bugprone-reserved-identifier)
}

namespace antipode {
namespace {

/// Where packages are installed.
constexpr std::array<std::string_view, 5> kInstalled{"/usr/include/", "/usr/lib/", "/usr/lib64/", "/lib/", "/lib64/"};

std::string Demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                         std::free);
  return status == 0 ? demangled.get() : name;
}

/// Whether an address is of this library's code. Where its section is not known, any may be.
bool IsOfLibrary(std::uintptr_t address, std::string_view object) {
  if (text::StartsWith(std::filesystem::path(object).filename().string(), "libantipode_")) return true;
  const auto begin = reinterpret_cast<std::uintptr_t>(__start_antipode_text);
  const auto end = reinterpret_cast<std::uintptr_t>(__stop_antipode_text);
  return begin == end || (begin <= address && address < end);
}

/// What the dynamic linker knows: the object, and of symbols those that are exported.
Frame LinkedAt(std::uintptr_t address) {
  Frame frame;
  Dl_info found{};
  void* place = nullptr;
  std::memcpy(&place, &address, sizeof place);
  if (dladdr(place, &found) == 0) return frame;
  if (found.dli_fname != nullptr) frame.object = found.dli_fname;
  if (found.dli_sname != nullptr) frame.function = PlainName(Demangled(found.dli_sname));
  char offset[32];
  std::snprintf(offset, sizeof offset, "+0x%zx",
                static_cast<std::size_t>(address - reinterpret_cast<std::uintptr_t>(found.dli_fbase)));
  frame.offset = offset;
  frame.library = IsOfLibrary(address, frame.object);
  return frame;
}

#ifdef ANTIPODE_BACKTRACE

void NoError(void*, const char*, int) {}

/// Of one address, what was found.
struct Found {
  Frame linked;
  std::string symbol;  ///< With its template arguments.
  std::vector<Frame> frames;
};

int Take(void* data, std::uintptr_t, const char* file, int line, const char* function) {
  auto& found = *static_cast<Found*>(data);
  if (file == nullptr && function == nullptr) return 0;
  Frame frame = found.linked;
  if (file != nullptr) frame.file = std::filesystem::path(file).lexically_normal().string();
  frame.line = file == nullptr ? 0 : line;
  frame.function = function == nullptr ? "" : PlainName(Demangled(function));
  found.frames.push_back(std::move(frame));
  return 0;
}

void TakeName(void* data, std::uintptr_t, const char* name, std::uintptr_t, std::uintptr_t) {
  if (name == nullptr) return;
  auto& found = *static_cast<Found*>(data);
  found.symbol = Demangled(name);
  found.linked.function = PlainName(found.symbol);
}

void Look(Found& found, std::uintptr_t address) {
  static auto& lock = *[] {  // Who has it may read the program's file, once.
    auto* made = new std::mutex;
    HoldWhileForking(ForkRank::kSymbols, *made);
    return made;
  }();
  static backtrace_state* const state = backtrace_create_state(nullptr, 0, NoError, nullptr);
  const std::lock_guard guard(lock);
  if (state == nullptr) return;
  backtrace_syminfo(state, address, TakeName, NoError, &found);
  backtrace_pcinfo(state, address, Take, NoError, &found);
}

std::vector<Frame> Known(const Frame& linked, std::uintptr_t address) {
  Found found{linked, "", {}};
  Look(found, address);
  if (found.frames.empty()) return {found.linked};
  // Debug information has no namespaces of what is local to a file; of the function that was not inlined, its symbol
  // has them. An inlined lambda is named by the nearest function around it that is not of an installed header, as of
  // std::function; where there is none, by the symbol, whose template arguments have it.
  if (!found.linked.function.empty()) found.frames.back().function = found.linked.function;
  std::string around = FunctionOfLambda(found.symbol);
  for (std::size_t outer = found.frames.size(); outer-- > 0;) {
    Frame& frame = found.frames[outer];
    if (frame.function.empty() || frame.function == "operator()") {
      if (!around.empty()) frame.function = around;
    } else if (!IsInstalled(frame.file)) {
      around = frame.function;
    }
  }
  return std::move(found.frames);
}

#else

std::vector<Frame> Known(const Frame& linked, std::uintptr_t) { return {linked}; }

#endif

/// The end of the brackets that begin at a place in a name.
std::size_t EndOf(const std::string& name, std::size_t begin) {
  int depth = 0;
  for (std::size_t i = begin; i < name.size(); ++i) {
    if (name[i] == '(' || name[i] == '<' || name[i] == '{') ++depth;
    const bool arrow = name[i] == '>' && i > 0 && name[i - 1] == '-';
    if ((name[i] == ')' || (name[i] == '>' && !arrow) || name[i] == '}') && --depth == 0) return i + 1;
  }
  return name.size();
}

}  // namespace

bool IsInstalled(std::string_view file) {
  return std::any_of(kInstalled.begin(), kInstalled.end(),
                     [&](const std::string_view folder) { return text::StartsWith(file, folder); });
}

std::string FunctionOfLambda(const std::string& name) {
  const std::size_t lambda = std::min(name.find("::{lambda("), name.find("::$_"));
  if (lambda == std::string::npos) return "";
  std::size_t begin = lambda;
  for (int depth = 0; begin > 0; --begin) {
    const char before = name[begin - 1];
    if (before == ')' || before == '>') ++depth;
    if (depth == 0 && (before == '<' || before == '(' || before == ',')) break;
    if (before == '(' || before == '<') --depth;
  }
  return PlainName(name.substr(begin, lambda - begin));
}

std::vector<Frame> FramesAt(std::uintptr_t address) { return Known(LinkedAt(address), address); }

std::string PlainName(const std::string& name) {
  static const auto& kAnonymous = *new std::string("(anonymous namespace)::");
  static const auto& kOperator = *new std::string("operator");
  std::string plain;
  for (std::size_t i = 0; i < name.size();) {
    const bool begins = plain.empty() || plain.back() == ':' || plain.back() == ' ';
    if (name.compare(i, kAnonymous.size(), kAnonymous) == 0) {
      i += kAnonymous.size();
    } else if (begins && name.compare(i, kOperator.size(), kOperator) == 0) {
      std::size_t end = i + kOperator.size();
      if (name.compare(end, 2, "()") == 0) end += 2;
      while (end < name.size() && name[end] != '(' &&
             (name[end] != '<' || end == i + kOperator.size() || name[end - 1] == '<')) {
        ++end;
      }
      plain += name.substr(i, end - i);
      i = end;
    } else if (name[i] == '<' || name[i] == '[') {
      i = name[i] == '<' ? EndOf(name, i) : std::min(name.find(']', i), name.size() - 1) + 1;
    } else if (name[i] == '{' || name.compare(i, 2, "$_") == 0) {
      // A lambda, of GCC or of Clang, or another thing without a name: what is around it has one.
      break;
    } else if (name[i] == '(') {
      const std::size_t end = EndOf(name, i);
      if (plain == "decltype") {
        i = end;
        continue;
      }
      const std::size_t more = name.find("::", end);
      if (more == std::string::npos || name[std::min(more + 2, name.size() - 1)] == '{') break;
      i = more;  // Of a class that is local to a function.
    } else if (name[i] == ' ') {
      plain.clear();  // What came was the type that it returns.
      ++i;
    } else {
      plain += name[i++];
    }
  }
  while (!plain.empty() && (plain.back() == ':' || plain.back() == ' ')) plain.pop_back();
  return plain.empty() ? name : plain;
}

}  // namespace antipode
