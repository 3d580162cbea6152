// Carries out requests, each in a separate thread, and answers on a stream.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>

#include "antipode/scope.h"
#include "json.h"
#include "open_shim.h"

namespace antipode::agent {

using json::Json;

class Agent {
 public:
  explicit Agent(std::ostream& answers) : answers_(answers) {}
  /// Waits for what still runs.
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Begins what one line asks for.
  void Take(const std::string& line);

 private:
  /// An open scope, and what ends it.
  struct Held;

  Json Run(const Json& request);
  void Answer(const Json& answer);
  Json Value(const Json& request);
  Json Statistics();
  /// The next test begins: nothing of the last one is open, or it is an error.
  Json Reset(const Json& settings);
  Json ValueInScope(const std::string& op, const Json& request);
  Json OpenScope(const Json& request);
  Json Barrier(const Json& request);
  Json CalledBack(const Json& request);
  bool Cancel(const Json& number);
  Json BeginFulfilling(const Json& request);
  Json BeginShim(const Json& request);
  Json EndShim(const Json& request);
  Json WithShim(const std::string& op, const Json& request);
  Json Hold(std::shared_ptr<Held> held);
  std::shared_ptr<Scope> ScopeOf(const Json& request);
  std::shared_ptr<OpenShim> ShimOf(const Json& request);

  std::ostream& answers_;
  std::mutex lock_;
  std::condition_variable idle_;
  int running_ = 0;
  int handles_ = 0;
  std::map<std::string, std::shared_ptr<Held>> scopes_;
  std::map<std::string, std::shared_ptr<OpenShim>> shims_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> counted_;  ///< When the present test began.
  std::map<Json, std::function<bool()>> cancels_;                         ///< Of requests that run, what ends them.
};

}  // namespace antipode::agent
