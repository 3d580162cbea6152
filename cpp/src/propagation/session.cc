#include "antipode/session.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <utility>

#include "antipode/errors.h"
#include "lineage/grammar.h"
#include "propagation/headers.h"
#include "propagation/session_content.h"
#include "request/inside.h"
#include "request/open_writes.h"
#include "runtime/dry_run.h"
#include "runtime/observers.h"
#include "runtime/settings.h"

namespace antipode {
namespace {

/// Most bytes of a cookie: its name, `=`, the content and the signature.
constexpr std::size_t kMostBytes = 1'024;
/// Cookies of one name that are read of a request: those of other paths and domains are sent, too.
constexpr std::size_t kMostCookies = 8;
constexpr std::size_t kLongestName = 64;

bool IsToken(std::string_view name) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return grammar::IsAlnum(c) || kOthers.find(c) != std::string_view::npos; });
}

void CheckAttribute(const char* what, std::string_view text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != ';'; })) return;
  throw ConfigurationError(std::string("the ") + what + " of a cookie cannot be '" + std::string(text) + "'");
}

void Ignored(const char* metric, SessionUse use, const std::string& why) {
  Count(metric);
  const std::string what = use == SessionUse::kToken ? "token" : "cookie";
  WarnOnce(metric, "", what + ": " + why, "a session " + what + " is ignored: " + why);
}

}  // namespace

struct SessionCookie::Inside {
  std::shared_ptr<const SessionSigner> signer;
  SessionOptions options;
  std::size_t room;  ///< For a content.

  /// The value of a `Set-Cookie` header.
  [[nodiscard]] std::string Header(std::string_view value, std::int64_t max_age_s, bool secure) const {
    std::string header = options.name + "=" + std::string(value) + "; Max-Age=" + std::to_string(max_age_s);
    header += "; Path=" + options.path;
    if (options.domain && !options.domain->empty()) header += "; Domain=" + *options.domain;
    if (secure) header += "; Secure";
    return header += "; HttpOnly; SameSite=Lax";
  }

  /// What is left of cookies or tokens; the others are counted, and ignored.
  [[nodiscard]] std::vector<session::Part> Read(SessionUse use, const std::vector<std::string_view>& values,
                                                const Clock& clock) const {
    const auto settings = SettingsInForce();
    const auto now_s = static_cast<std::int64_t>(clock.UnixSeconds());
    std::vector<session::Part> parts;
    for (std::size_t n = 0; n < std::min(values.size(), kMostCookies); ++n) {
      const auto content = values[n].size() <= kMostBytes ? signer->Unsign(use, values[n]) : std::nullopt;
      if (!content) {
        Ignored("session_forged", use, "no key of this service has signed it");
        continue;
      }
      std::string why;
      const auto read = session::PartsOf(*content, clock, *settings, &why);
      if (!read) {
        Ignored("session_unreadable", use, why);
        continue;
      }
      const auto living = session::Living(*read, now_s, settings->session_max_age.count());
      if (living.empty()) Count("session_old");
      parts.insert(parts.end(), living.begin(), living.end());
    }
    if (values.size() > kMostCookies) {
      Ignored("session_forged", use,
              "more than " + std::to_string(kMostCookies) + " of its name came with one request");
    }
    return parts;
  }
};

struct SessionRequest::Inside {
  std::shared_ptr<const SessionCookie::Inside> cookie;
  std::shared_ptr<Scope> scope;
  const Clock& clock;
  bool secure;   ///< Whether browsers send the cookie over TLS alone.
  bool without;  ///< Whether no cookie of the name came.
  std::vector<session::Part> parts;

  [[nodiscard]] std::optional<SessionChange> Change(int status, const Headers& headers) const {
    const auto settings = SettingsInForce();
    const double max_age_s = settings->session_max_age.count();
    const auto now_s = static_cast<std::int64_t>(clock.UnixSeconds());
    const Lineage added = session::WorthCarrying(Added(), now_s, max_age_s);
    if (added.empty() && (!parts.empty() || without)) return std::nullopt;
    const auto cache_control = session::Caching(status, headers);
    if (!cache_control) {
      if (!added.empty()) {
        Count("session_unset");
        WarnOnce("session_unset", "", "",
                 "a response that a shared cache may keep sets no session cookie: the next request of its user does "
                 "not depend on what this one wrote");
      }
      return std::nullopt;
    }
    if (added.empty()) return SessionChange{"", cookie->Header("", 0, secure), *cache_control};
    std::vector<session::Part> all = parts;
    all.push_back({now_s, added});
    const std::string value =
        cookie->signer->Sign(SessionUse::kCookie, session::ContentOf(all, cookie->room, *settings));
    const auto lasts_s = static_cast<std::int64_t>(std::ceil(max_age_s));
    return SessionChange{value, cookie->Header(value, lasts_s, secure), *cache_control};
  }

  /// The lineage without what came with the request, as its response starts.
  [[nodiscard]] Lineage Added() const {
    Scope::Inside& inside = scope->inside();
    const std::lock_guard guard(inside.lock);
    inside.answered = true;
    return inside.lineage.Beyond(inside.came);
  }
};

SessionSigner::~SessionSigner() = default;

SessionRequest::SessionRequest(std::unique_ptr<const Inside> inside) noexcept : inside_(std::move(inside)) {}
SessionRequest::SessionRequest(SessionRequest&&) noexcept = default;
SessionRequest& SessionRequest::operator=(SessionRequest&&) noexcept = default;
SessionRequest::~SessionRequest() = default;

std::optional<SessionChange> SessionRequest::Change(int status, const Headers& headers) const {
  if (Disabled()) return std::nullopt;
  try {
    return inside_->Change(status, headers);
  } catch (const std::exception& error) {  // The response goes out.
    WarnOnce("session", "", "", std::string("a response goes without its session cookie: ") + error.what());
    return std::nullopt;
  }
}

void SessionRequest::Inject(int status, Headers& headers) const {
  const auto change = Change(status, headers);
  if (!change) return;
  headers.emplace_back("set-cookie", change->set_cookie);
  Replace(headers, "cache-control", change->cache_control);
}

SessionCookie::SessionCookie(std::shared_ptr<const SessionSigner> signer, SessionOptions options) {
  if (options.name.empty() || options.name.size() > kLongestName || !IsToken(options.name)) {
    throw ConfigurationError("a cookie's name is a token of at most 64 characters, not '" + options.name + "'");
  }
  CheckAttribute("path", options.path);
  CheckAttribute("domain", options.domain.value_or(""));
  const std::size_t taken = options.name.size() + 1 + signer->Sign(SessionUse::kCookie, "").size();
  if (taken > kMostBytes) throw ConfigurationError("a signature leaves no room in a session cookie");
  inside_ = std::make_shared<const Inside>(Inside{std::move(signer), std::move(options), kMostBytes - taken});
}

SessionRequest SessionCookie::Begin(std::shared_ptr<Scope> scope, const Headers& headers, bool on_tls,
                                    const Clock& clock) const {
  std::vector<std::string_view> values;
  std::vector<std::string_view> tokens;
  if (!Disabled()) {
    values = session::CookiesOf(headers, inside_->options.name);
    tokens = session::TokensOf(headers);
  }
  auto parts = inside_->Read(SessionUse::kCookie, values, clock);
  const auto events = inside_->Read(SessionUse::kToken, tokens, clock);
  if (!parts.empty() || !events.empty()) {
    Lineage came;
    for (const session::Part& part : parts) came = came.Merge(part.lineage);
    for (const session::Part& part : events) came = came.Merge(part.lineage);
    Scope::Inside& inside = scope->inside();
    const std::lock_guard guard(inside.lock);
    inside.came = Kept(inside.came.Merge(came));
    inside.TakeIn(came);
  }
  return SessionRequest(std::make_unique<const SessionRequest::Inside>(SessionRequest::Inside{
      inside_, std::move(scope), clock, inside_->options.secure.value_or(on_tls), values.empty(), std::move(parts)}));
}

std::string SessionCookie::Token(const Scope& scope, const Clock& clock) const {
  if (Disabled()) return "";
  TellOfUnsent(scope);
  if (const auto observer = DryRunNow()) observer->Leaves(scope);
  const auto settings = SettingsInForce();
  const auto now_s = static_cast<std::int64_t>(clock.UnixSeconds());
  const Lineage known = session::WorthCarrying(scope.lineage(), now_s, settings->session_max_age.count());
  const std::size_t room = kMostBytes - inside_->signer->Sign(SessionUse::kToken, "").size();
  const std::string content = session::ContentOf({{now_s, known}}, room, *settings);
  return content.empty() ? "" : inside_->signer->Sign(SessionUse::kToken, content);
}

}  // namespace antipode
