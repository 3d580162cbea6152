#include "agent.h"

#include <cxxabi.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <stdexcept>
#include <thread>
#include <typeinfo>
#include <utility>

#include "antipode/barrier.h"
#include "antipode/observer.h"
#include "antipode/propagation.h"
#include "barrier/watcher.h"
#include "barrier_json.h"
#include "headers_json.h"
#include "open_shim.h"
#include "scripts.h"
#include "settings_json.h"
#include "verdicts.h"

namespace antipode::agent {
namespace {

/// Another request cancelled this one.
class Cancelled : public std::exception {};

Headers HeadersOf(const Json& found) {
  Headers headers;
  for (const Json& each : found) headers.emplace_back(each[0], each[1]);
  return headers;
}

Json OfHeaders(const Headers& headers) {
  Json found = Json::array();
  for (const auto& [name, value] : headers) found.push_back({name, value});
  return found;
}

Json Rendered(const Json& request) {
  const Lineage lineage = json::LineageOf(request.at("lineage"));
  if (!request.contains("max_bytes") && !request.contains("egress")) return lineage.Serialize();
  Bound bound{request.value("max_bytes", std::size_t{SIZE_MAX}), {}};
  if (request.contains("egress")) bound.egress = request.at("egress").get<std::set<std::string>>();
  return lineage.Serialize(bound);
}

BarrierOptions OptionsOf(const Json& request) {
  Json given = Json::object();
  for (const char* name : {"at", "only", "exclude", "on_unmet", "on_unknown", "on_incomplete", "mode"}) {
    if (request.contains(name)) given[name] = request.at(name);
  }
  BarrierOptions options = json::BarrierOptionsOf(given);
  options.timeout = Seconds(request.value("timeout_s", 0.0));
  const Json text = request.value("lineage", Json());
  if (!text.is_null()) options.lineage = Lineage::Deserialize(text.get<std::string>());
  return options;
}

Json DecidedHeaders(const Json& request) {
  const std::string kind = request.at("kind");
  if (auto value = json::DecideHeaders(kind, request.at("given"))) return *std::move(value);
  throw Unsupported("C++ has no headers of the kind '" + kind + "'");
}

std::string NameOfClass(const std::exception& error) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : typeid(error).name();
}

Json TextOf(const std::optional<Lineage>& lineage) { return lineage ? Json(lineage->Serialize()) : Json(); }

std::optional<Lineage> LineageIn(const Json& request) {
  const Json text = request.value("lineage", Json());
  if (text.is_null()) return std::nullopt;
  return Lineage::Deserialize(text.get<std::string>());
}

Json Error(const std::string& code, const char* message) { return {{"code", code}, {"message", message}}; }

}  // namespace

struct Agent::Held {
  std::shared_ptr<Scope> scope;
  std::unique_ptr<Branch> branch;  ///< Whose end joins the scope around it.
};

Agent::~Agent() {
  std::unique_lock guard(lock_);
  idle_.wait(guard, [this] { return running_ == 0; });
}

void Agent::Take(const std::string& line) {
  Json request = Json::parse(line, nullptr, false);
  if (!request.is_object() || !request.contains("id") || !request.contains("op")) {
    Answer({{"id", nullptr}, {"error", Error("agent", "a request is an object with id and op")}});
    return;
  }
  {
    const std::lock_guard guard(lock_);
    ++running_;
    // From now on it can be cancelled, though it has not begun.
    if (request.at("op") == "barrier" && request.value("api", "sync") == "callback") {
      cancels_[request.at("id")] = nullptr;
    }
  }
  std::thread([this, request = std::move(request)] {
    Json answer;
    // The end of this thread tells a dry run that the reads of the request are over.
    std::thread([this, &request, &answer] { answer = Run(request); }).join();
    Answer(answer);
    const std::lock_guard guard(lock_);
    cancels_.erase(request.at("id"));
    if (--running_ == 0) idle_.notify_all();
  }).detach();
}

Json Agent::Run(const Json& request) {
  Json answer{{"id", request.at("id")}};
  try {
    answer["value"] = Value(request);
  } catch (const LineageDecodeError& error) {
    answer["error"] = Error(error.code(), error.what());
    answer["error"]["offset"] = error.offset();
  } catch (const UnmetError& error) {
    answer["error"] = Error(error.code(), error.what());
    answer["error"]["result"] = json::Of(error.result());
  } catch (const AntipodeError& error) {
    answer["error"] = Error(error.code(), error.what());
  } catch (const Cancelled&) {
    answer["error"] = Error("cancelled", "another request cancelled this one");
  } catch (const Unsupported& error) {
    answer["error"] = Error("unsupported", error.what());
  } catch (const std::logic_error& error) {
    answer["error"] = Error("agent", error.what());
  } catch (const Json::exception& error) {
    answer["error"] = Error("agent", error.what());
  } catch (const std::exception& error) {
    answer["error"] = Error("store", error.what());
    answer["error"]["type"] = NameOfClass(error);
  }
  return answer;
}

void Agent::Answer(const Json& answer) {
  const std::string line = answer.dump() + "\n";
  const std::lock_guard guard(lock_);
  answers_ << line << std::flush;
}

Json Agent::Value(const Json& request) {
  const std::string op = request.at("op");
  if (op == "hello") return {{"language", "cpp"}, {"version", "0.1.0"}, {"stores", StoresHere()}};
  if (op == "parse") {
    const Lineage lineage = Lineage::Deserialize(request.at("text").get<std::string>());
    return {{"lineage", json::Of(lineage)}, {"text", lineage.Serialize()}};
  }
  if (op == "render") return Rendered(request);
  if (op == "algebra") return json::Algebra(request.at("steps"));
  if (op == "explain") return Json::array({Lineage::Deserialize(request.at("text").get<std::string>()).Serialize()});
  if (op == "decide") return Decide(request);
  if (op == "headers" && request.at("kind") == "verdicts") return JudgeReads(request.at("given"));
  if (op == "headers") return DecidedHeaders(request);
  if (op == "script") return RunScript(request.at("script"));
  if (op == "cancel") return Cancel(request.at("request"));
  if (op == "configure") {
    const Settings before = CurrentSettings();
    Configure(json::SettingsOf(request.at("settings"), before));
    return json::Of(before);
  }
  if (op == "statistics") return Statistics();
  if (op == "reset") return Reset(request.at("settings"));
  if (op == "open_scope") return OpenScope(request);
  const ScopeGuard guard(ScopeOf(request));
  return ValueInScope(op, request);
}

Json Agent::Statistics() {
  const std::lock_guard guard(lock_);
  Json metrics = Json::array();
  for (const auto& [name, count] : Metrics()) {
    const auto before = counted_.find(name);
    const auto since = count - (before == counted_.end() ? 0 : before->second);
    if (since > 0) metrics.push_back({name.first, name.second, since});
  }
  const auto descriptors = std::filesystem::directory_iterator("/proc/self/fd");
  return {{"metrics", metrics},
          {"watchers", WatchersAtWork()},
          {"connections", std::distance(begin(descriptors), end(descriptors))}};
}

Json Agent::Reset(const Json& settings) {
  const std::lock_guard guard(lock_);
  std::string left;
  for (const auto& [handle, scope] : scopes_) left += " " + handle;
  for (const auto& [handle, shim] : shims_) left += " " + handle;
  if (!left.empty()) throw std::out_of_range("still open:" + left);
  Configure(json::SettingsOf(settings, CurrentSettings()));
  ForgetServices();
  counted_ = Metrics();
  return nullptr;
}

Json Agent::ValueInScope(const std::string& op, const Json& request) {
  if (op == "close_scope") {
    const std::lock_guard guard(lock_);
    const auto held = scopes_.extract(request.at("scope").get<std::string>());
    if (!held.mapped()->branch) held.mapped()->scope->End();
    return nullptr;
  }
  if (op == "lineage") return Current().Serialize();
  if (op == "merge_into") {
    Transfer(Lineage::Deserialize(request.at("text").get<std::string>()));
    return nullptr;
  }
  if (op == "request_headers") {
    Headers headers = HeadersOf(request.value("headers", Json::array()));
    OutgoingCall("http", "agent", {}, "/").Outfit(headers);
    return OfHeaders(headers);
  }
  if (op == "response_headers") {
    Headers headers;
    if (const auto scope = CurrentScope()) InjectResponse(*scope, headers);
    return OfHeaders(headers);
  }
  if (op == "receive") {
    ExtractResponse(HeadersOf(request.at("headers")), "", CurrentScope().get());
    return nullptr;
  }
  if (op == "fulfilling") return BeginFulfilling(request);
  if (op == "open_shim") return BeginShim(request);
  if (op == "close_shim") return EndShim(request);
  if (op == "write" || op == "delete" || op == "read" || op == "rolled_back" || op == "wait") {
    return WithShim(op, request);
  }
  if (op == "barrier") return Barrier(request);
  if (op == "check") return json::Of(Check(OptionsOf(request), request.value("refresh", true)));
  if (op == "promise") {
    const Promise made = MakePromise(request.at("datastore"), Seconds(request.at("expires_in_s").get<double>()));
    return {{"promise", json::Of(made)}, {"token", TokenOf(made)}};
  }
  if (op == "abandon") return Abandon(json::PromiseOf(request.at("promise")));
  throw Unsupported("C++ has no operation '" + op + "' yet");
}

Json Agent::Barrier(const Json& request) {
  const std::string api = request.value("api", "sync");
  if (api == "sync") return json::Of(antipode::Barrier(OptionsOf(request)));
  if (api == "async") return json::Of(BarrierAsync(OptionsOf(request)).get());
  if (api == "callback") return CalledBack(request);
  throw std::out_of_range("no way '" + api + "' to call a barrier");
}

Json Agent::CalledBack(const Json& request) {
  const auto ended = std::make_shared<std::promise<std::optional<BarrierResult>>>();
  auto handle = BarrierCallback([ended](const BarrierResult& result) { ended->set_value(result); }, OptionsOf(request));
  const Json& number = request.at("id");
  {
    const std::lock_guard guard(lock_);
    const auto cancel = cancels_.find(number);
    if (cancel == cancels_.end()) {
      handle.Cancel();
      throw Cancelled();
    }
    cancel->second = [ended, handle]() mutable {
      const bool running = handle.Cancel();
      if (running) ended->set_value(std::nullopt);
      return running;
    };
  }
  const auto result = ended->get_future().get();
  if (!result) throw Cancelled();
  return json::Of(*result);
}

bool Agent::Cancel(const Json& number) {
  std::function<bool()> cancel;
  {
    const std::lock_guard guard(lock_);
    const auto found = cancels_.extract(number);
    if (found.empty()) return false;
    cancel = found.mapped();
  }
  return !cancel || cancel();
}

Json Agent::OpenScope(const Json& request) {
  auto held = std::make_shared<Held>();
  if (request.contains("headers")) {
    held->scope = Extract(HeadersOf(request.at("headers")));
  } else {
    const Json text = request.value("text", Json());
    held->scope = text.is_null() ? std::make_shared<Scope>() : Scope::Received(text.get<std::string>());
  }
  return Hold(std::move(held));
}

Json Agent::BeginFulfilling(const Json& request) {
  auto held = std::make_shared<Held>();
  held->branch = std::make_unique<Branch>(CurrentScope(), PromiseOf(request.at("token").get<std::string>()));
  held->scope = held->branch->scope() ? held->branch->scope() : std::make_shared<Scope>();
  const Json promise = json::Of(held->branch->promise());
  Json value = Hold(std::move(held));
  value["promise"] = promise;
  return value;
}

Json Agent::BeginShim(const Json& request) {
  std::shared_ptr<OpenShim> opened = OpenShimOf(request);
  const std::lock_guard guard(lock_);
  const std::string handle = "d" + std::to_string(++handles_);
  shims_[handle] = std::move(opened);
  return {{"shim", handle}};
}

Json Agent::EndShim(const Json& request) {
  std::shared_ptr<OpenShim> ended = ShimOf(request);
  const std::lock_guard guard(lock_);
  shims_.erase(request.at("shim").get<std::string>());
  return nullptr;
}

Json Agent::WithShim(const std::string& op, const Json& request) {
  const std::shared_ptr<OpenShim> shim = ShimOf(request);
  if (op == "wait") {
    BarrierOptions options = OptionsOf(request);
    options.only = std::set<std::string>{shim->store().datastore()};
    return json::Of(antipode::Barrier(options));
  }
  const std::string key = request.at("key");
  if (op == "read") {
    const auto [value, lineage] = shim->Read(key);
    return {{"value", value ? Json(*value) : Json()}, {"lineage", TextOf(lineage)}};
  }
  if (op == "delete") return TextOf(shim->Delete(key, LineageIn(request)));
  const Json promise = request.value("fulfils", Json());
  if (op == "rolled_back") {
    shim->RollBack(key, request.at("value"), json::PromiseOf(promise));
    return nullptr;
  }
  const auto fulfils = promise.is_null() ? std::nullopt : std::optional(json::PromiseOf(promise));
  return TextOf(shim->Write(key, request.at("value"), LineageIn(request), fulfils));
}

std::shared_ptr<OpenShim> Agent::ShimOf(const Json& request) {
  const std::string handle = request.at("shim");
  const std::lock_guard guard(lock_);
  const auto found = shims_.find(handle);
  if (found == shims_.end()) throw std::out_of_range("no open shim " + handle);
  return found->second;
}

Json Agent::Hold(std::shared_ptr<Held> held) {
  const std::lock_guard guard(lock_);
  const std::string handle = "s" + std::to_string(++handles_);
  scopes_[handle] = std::move(held);
  return {{"scope", handle}};
}

std::shared_ptr<Scope> Agent::ScopeOf(const Json& request) {
  const Json handle = request.value("scope", Json());
  if (handle.is_null()) return nullptr;
  const std::lock_guard guard(lock_);
  const auto held = scopes_.find(handle.get<std::string>());
  if (held == scopes_.end()) throw std::out_of_range("no open scope " + handle.get<std::string>());
  return held->second->scope;
}

}  // namespace antipode::agent
