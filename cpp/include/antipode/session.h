#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/clock.h"
#include "antipode/export.h"
#include "antipode/propagation.h"
#include "antipode/scope.h"

namespace antipode {

/// What is signed: what is signed as the one never passes for the other.
enum class SessionUse {
  kCookie,
  kToken,  ///< Of an event to whoever's browser.
};

/// Signs what a session cookie or a token holds. Thread-safe.
class ANTIPODE_EXPORT SessionSigner {
 public:
  virtual ~SessionSigner();
  /// A content with its signature, which adds the same number of characters to every content.
  [[nodiscard]] virtual std::string Sign(SessionUse use, std::string_view content) const = 0;
  /// The content of a value; none where no key has signed it for this use.
  [[nodiscard]] virtual std::optional<std::string> Unsign(SessionUse use, std::string_view value) const = 0;
};

/// HMAC with SHA-256 of a text: its 32 bytes. Thread-safe.
using KeyedHash = std::function<std::string(std::string_view key, std::string_view text)>;

/// What signs as the services in Python and Java do, by an HMAC of yours; the component `session_keys` has OpenSSL's.
///
/// `keys` are secrets that all servers of this service share, of at least 16 characters each. The first signs, the
/// others are believed, too. To change it, let all servers know the new one last, then sign with it, and drop the old
/// one when its cookies are too old anyway. Throws ConfigurationError where there is none, or one is too short.
ANTIPODE_EXPORT std::shared_ptr<const SessionSigner> SignerOf(const std::vector<std::string>& keys, KeyedHash hash);

/// How a session cookie is named, and where browsers send it.
struct SessionOptions {
  std::string name = "antipode";
  std::string path = "/";                     ///< Below which.
  std::optional<std::string> domain = {};     ///< To whose subdomains, too; none: to this host alone.
  std::optional<bool> secure = std::nullopt;  ///< Over TLS alone; none: where the request came over TLS. Say true where
                                              ///< a proxy ends TLS and the server does not know it.
};

/// What a response does to the cookie.
struct SessionChange {
  std::string value;          ///< Signed; empty to remove it.
  std::string set_cookie;     ///< The value of its `Set-Cookie` header.
  std::string cache_control;  ///< What the response must say in `Cache-Control`.
};

/// One request of a user, from its cookies to its response. Of one thread at a time.
class ANTIPODE_EXPORT SessionRequest {
 public:
  SessionRequest(SessionRequest&&) noexcept;
  SessionRequest& operator=(SessionRequest&&) noexcept;
  ~SessionRequest();

  /// What the response, which starts now, does to the cookie; none: nothing. `headers` are all of its headers. What is
  /// written later is counted. It never throws for what the response is.
  [[nodiscard]] std::optional<SessionChange> Change(int status, const Headers& headers) const;
  /// Puts that into the headers of the response: `Set-Cookie`, and `Cache-Control` in place of what is there.
  void Inject(int status, Headers& headers) const;

 private:
  friend class SessionCookie;
  struct Inside;
  explicit SessionRequest(std::unique_ptr<const Inside> inside) noexcept;
  std::unique_ptr<const Inside> inside_;
};

/// The signed cookie that carries what a request added to the next requests of its user (specification, sessions).
///
///     const antipode::SessionCookie cookie(antipode::SessionKeys({secret}));
///     ...
///     const auto session_request = cookie.Begin(request.scope(), headers, on_tls);   // a request begins
///     ...
///     session_request.Inject(200, response_headers);                                 // its response starts
///
/// Immutable, cheap to copy, and safe to share between threads.
class ANTIPODE_EXPORT SessionCookie {
 public:
  /// Throws ConfigurationError where a browser would not take it.
  explicit SessionCookie(std::shared_ptr<const SessionSigner> signer, SessionOptions options = {});

  /// Lets a scope start from what the cookies and tokens of its request say as well. It never throws for what they say:
  /// what cannot be believed is counted, and ignored.
  ///
  /// `headers` are all of the request's, `on_tls` whether it came over TLS, and `clock` is what ages go by.
  [[nodiscard]] SessionRequest Begin(std::shared_ptr<Scope> scope, const Headers& headers, bool on_tls,
                                     const Clock& clock = SystemClock()) const;

  /// What a scope depends on by now, for an event to whoever's browser: at most 1,024 characters, without spaces and
  /// commas; empty where there is nothing to wait for. The page that gets the event sends it in the header
  /// `antipode-session` of its next requests: those depend on it, for `session_max_age`. It is signed, not hidden:
  /// `egress` says which datastores may be named (specification, sessions, "The token").
  ///
  /// What is written later is not in it, nor what a transaction has written that is not committed yet: that is counted
  /// (`sent_before_commit`).
  [[nodiscard]] std::string Token(const Scope& scope, const Clock& clock = SystemClock()) const;

  /// For the library.
  struct Inside;

 private:
  std::shared_ptr<const Inside> inside_;
};

}  // namespace antipode
