// What the programs share that hold instrumented clients to their claims on real servers: a check that does not hold
// ends the program.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "antipode/barrier.h"
#include "antipode/scope.h"

namespace antipode::checks {

inline void Check(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  std::exit(1);
}

inline void Same(const std::string& found, const std::string& expected) {
  Check(found == expected, found + " instead of " + expected);
}

/// How many writes the scope has, and its marks.
inline void Holds(std::size_t writes, const std::string& mark = "") {
  const Lineage lineage = Current();
  Check(lineage.writes().size() == writes, std::to_string(lineage.writes().size()) + " writes");
  std::string marks;
  for (const Incomplete& each : lineage.incomplete()) marks += each.reason;
  Same(marks, mark);
}

inline void BarrierAtRead(double timeout_s = 20) {
  BarrierOptions options;
  options.timeout = std::chrono::duration<double>(timeout_s);
  options.at = At::kRead;
  Barrier(options);
}

template <typename Error>
void Throws(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error&) {
    return;
  }
  Check(false, "it throws");
}

/// A server as the tests name it: `host:port`.
struct Server {
  explicit Server(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    host = address.substr(0, colon);
    port = static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1)));
  }

  std::string host;
  std::uint16_t port = 0;
};

}  // namespace antipode::checks
