#include "sessions_json.h"

#include <stdexcept>

#include "antipode/observer.h"
#include "antipode/session.h"
#ifdef ANTIPODE_SESSION_KEYS
#include "antipode/session_keys.h"
#endif
#include "antipode/text.h"
#include "runtime/clock.h"

namespace antipode::json {
namespace {

constexpr std::size_t kCookieBytes = 1'024;
constexpr std::size_t kUsualRoom = 971;

/// A signature that leaves its content legible and leaves it so much room in the cookie.
class Shown final : public SessionSigner {
 public:
  explicit Shown(std::size_t room) {
    const std::string start = "antipode=";
    signature_ = "." + std::string(kCookieBytes - start.size() - room - 1, 's');
  }
  [[nodiscard]] std::string Sign(SessionUse /*use*/, std::string_view content) const override {
    return std::string(content) + signature_;
  }
  [[nodiscard]] std::optional<std::string> Unsign(SessionUse /*use*/, std::string_view value) const override {
    if (!text::EndsWith(value, signature_)) return std::nullopt;
    return std::string(value.substr(0, value.size() - signature_.size()));
  }

 private:
  std::string signature_;
};

/// A clock that stands still.
class Stopped final : public Clock {
 public:
  explicit Stopped(double unix_s) : unix_s_(unix_s) {}
  [[nodiscard]] double Now() const override { return unix_s_; }
  [[nodiscard]] double UnixSeconds() const override { return unix_s_; }
  void Spawn(const std::shared_ptr<Stepper>&) override { throw std::logic_error("nothing runs on this clock"); }

 private:
  double unix_s_;
};

/// While there is one, the process goes by this clock.
class OnClock {
 public:
  explicit OnClock(Clock& clock) { ReplaceSystemClock(&clock); }
  OnClock(const OnClock&) = delete;
  OnClock& operator=(const OnClock&) = delete;
  ~OnClock() { ReplaceSystemClock(nullptr); }
};

std::map<std::string, std::uint64_t> Counts() {
  std::map<std::string, std::uint64_t> counts;
  for (const auto& [metric, count] : Metrics()) {
    const std::string& name = metric.first;
    if (text::StartsWith(name, "session_") || text::StartsWith(name, "dropped_for_size")) counts[name] += count;
  }
  return counts;
}

std::string ValueOf(const Json& content, const Shown& signer, SessionUse use) {
  return content.is_null() ? "forged" : signer.Sign(use, content.get<std::string>());
}

Headers RequestOf(const Json& request, const Shown& signer) {
  Headers headers;
  for (const Json& each : request.value("headers", Json::array())) headers.emplace_back(each[0], each[1]);
  std::string cookies;
  for (const Json& content : request.value("cookies", Json::array())) {
    if (!cookies.empty()) cookies += "; ";
    cookies += "antipode=" + ValueOf(content, signer, SessionUse::kCookie);
  }
  for (const Json& pair : request.value("pairs", Json::array())) {
    if (!cookies.empty()) cookies += "; ";
    cookies += pair.get<std::string>();
  }
  if (!cookies.empty()) headers.emplace_back("cookie", cookies);
  for (const Json& content : request.value("tokens", Json::array())) {
    headers.emplace_back("Antipode-Session", ValueOf(content, signer, SessionUse::kToken));
  }
  return headers;
}

/// As it is: a write that is recorded here would state the present hour.
Lineage AddedBy(const Json& request) {
  Json added = Json::object();
  if (request.contains("adds")) added["writes"] = request.at("adds");
  if (request.contains("marks")) added["incomplete"] = request.at("marks");
  if (request.contains("open_branches")) added["open_branches"] = request.at("open_branches");
  return LineageOf(added);
}

Json Visited(const SessionCookie& cookie, const Shown& signer, const Json& request) {
  Stopped clock(request.at("at_s").get<double>());
  const OnClock now(clock);
  const auto before = Counts();
  const Headers headers = RequestOf(request, signer);
  const auto scope = Extract(headers);
  const SessionRequest session_request = cookie.Begin(scope, headers, false, clock);
  Json value{{"starts", Of(scope->lineage())}, {"content", nullptr}, {"cache_control", nullptr}, {"lasts", false}};
  scope->Merge(AddedBy(request));
  Headers answer;
  for (const Json& each : request.value("answer", Json::array())) answer.emplace_back(each[0], each[1]);
  if (const auto change = session_request.Change(request.value("status", 200), answer)) {
    value["content"] = change->value.empty() ? "" : signer.Unsign(SessionUse::kCookie, change->value).value();
    value["cache_control"] = change->cache_control;
    value["lasts"] = change->set_cookie.find("Max-Age=0;") == std::string::npos;
  }
  value["counts"] = Json::object();
  for (const auto& [name, count] : Counts()) {
    const auto earlier = before.find(name);
    const std::uint64_t more = count - (earlier == before.end() ? 0 : earlier->second);
    if (more > 0) value["counts"][name] = more;
  }
  const std::string token = cookie.Token(*scope, clock);
  value["token"] = token.empty() ? "" : signer.Unsign(SessionUse::kToken, token).value();
  return value;
}

}  // namespace

Json Sessions(const Json& given) {
  const auto signer = std::make_shared<const Shown>(given.value("room", kUsualRoom));
  const SessionCookie cookie(signer);
  Json requests = Json::array();
  for (const Json& request : given.at("requests")) requests.push_back(Visited(cookie, *signer, request));
  return {{"requests", requests}};
}

#ifdef ANTIPODE_SESSION_KEYS
Json SessionSignature(const Json& given) {
  const auto signer = SessionKeys(given.at("keys").get<std::vector<std::string>>());
  const SessionUse use = given.value("of", "cookie") == "token" ? SessionUse::kToken : SessionUse::kCookie;
  const auto read = signer->Unsign(use, given.at("came").get<std::string>());
  return {{"value", signer->Sign(use, given.at("content").get<std::string>())}, {"read", read ? Json(*read) : Json()}};
}
#endif

}  // namespace antipode::json
