#include "budgets/calls.h"

#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "antipode/scope.h"
#include "budgets/counting.h"

namespace antipode::budgets {
namespace {

constexpr int kWarm = 20;   ///< After so many calls all caches are filled.
constexpr int kCalls = 80;  ///< So many are counted then, of which
constexpr int kAlike = 10;  ///< so many have to come to the same.

void Nothing() {}

/// What one call comes to, in the scope of a request or in none.
Counts Once(const Call& call, bool in_request) {
  std::optional<ScopeGuard> request;
  if (in_request) request.emplace();
  Begin();
  call();
  return End();
}

std::int64_t Sum(const Counts& counts) {
  std::int64_t sum = 0;
  for (const auto& [at, count] : counts) sum += count;
  return sum;
}

/// The same once all is warm. On a busy machine replies arrive in pieces, and a watcher asks meanwhile: so it is the
/// least of what calls came to again and again.
Counts Steady(const Call& call, bool in_request) {
  std::map<Counts, int> came;
  for (int nth = 0; nth < kWarm; ++nth) Once(call, in_request);
  for (int nth = 0; nth < kCalls; ++nth) ++came[Once(call, in_request)];
  const Counts* least = nullptr;
  for (const auto& [counts, times] : came) {
    if (times >= kAlike && (least == nullptr || Sum(counts) < Sum(*least))) least = &counts;
  }
  if (least == nullptr) throw std::runtime_error("no calls came to the same");
  return *least;
}

/// Its templates are the standard library's, which allocate.
std::string Compiler() {
#ifdef __clang__
  return "clang-" + std::to_string(__clang_major__);
#else
  return "gcc-" + std::to_string(__GNUC__);
#endif
}

/// One line a call: `{"line": ..., "added": [[what, offset, count], ...], ...}`.
void Print(const std::string& line, const Drivers& drivers, const Counts& ours, const Counts& plain) {
  Counts added = ours;
  for (const auto& [at, count] : plain) added[at] -= count;
  nlohmann::json found = nlohmann::json::array();
  for (const auto& [at, count] : added) {
    if (count != 0) found.push_back({at.first, at.second, count});
  }
  std::cout << nlohmann::json{{"line", line}, {"added", found}, {"drivers", drivers}, {"compiler", Compiler()}} << "\n";
}

}  // namespace

void Compare(const std::string& line, const Drivers& drivers, const Call& ours, const Call& plain) {
  const Counts instrumented = Steady(ours, true);
  Print(line, drivers, instrumented, Steady(plain, true));
}

void InProcess(const std::string& line, const Call& call, const Drivers& drivers) {
  Print(line, drivers, Steady(call, false), Steady(Nothing, false));
}

}  // namespace antipode::budgets
