// Signatures as itsdangerous makes them: `content "." base64url(HMAC(HMAC(secret, salt), content))`.
#include <algorithm>
#include <utility>

#include "antipode/errors.h"
#include "antipode/session.h"
#include "lineage/grammar.h"

namespace antipode {
namespace {

constexpr std::size_t kFewestCharacters = 16;
/// With these a signature is of a session cookie, or of a token, whatever else its key signs.
constexpr std::string_view kCookieSalt = "antipode.session";
constexpr std::string_view kTokenSalt = "antipode.session.token";
constexpr char kBefore = '.';

/// Of UTF-8: bytes that go on with a character are none.
std::size_t CharactersOf(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// In a time that says nothing of where two texts differ.
bool AreSame(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned differences = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    differences = differences | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  }
  return differences == 0;
}

class Keys final : public SessionSigner {
 public:
  Keys(const std::vector<std::string>& secrets, KeyedHash hash) : hash_(std::move(hash)) {
    for (const std::string& secret : secrets) {
      if (CharactersOf(secret) < kFewestCharacters) {
        throw ConfigurationError("a key of a session is a secret of at least 16 characters");
      }
      cookie_keys_.push_back(hash_(secret, kCookieSalt));
      token_keys_.push_back(hash_(secret, kTokenSalt));
    }
    if (cookie_keys_.empty()) throw ConfigurationError("a session cookie needs a key");
  }

  [[nodiscard]] std::string Sign(SessionUse use, std::string_view content) const override {
    return std::string(content) + kBefore + SignatureOf(KeysOf(use).front(), content);
  }

  [[nodiscard]] std::optional<std::string> Unsign(SessionUse use, std::string_view value) const override {
    const std::size_t dot = value.rfind(kBefore);
    if (dot == std::string_view::npos) return std::nullopt;
    const std::string_view content = value.substr(0, dot);
    for (const std::string& key : KeysOf(use)) {
      if (AreSame(SignatureOf(key, content), value.substr(dot + 1))) return std::string(content);
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] const std::vector<std::string>& KeysOf(SessionUse use) const {
    return use == SessionUse::kToken ? token_keys_ : cookie_keys_;
  }

  [[nodiscard]] std::string SignatureOf(const std::string& key, std::string_view content) const {
    std::string signature;
    grammar::AppendBase64(signature, hash_(key, content));
    return signature;
  }

  KeyedHash hash_;
  /// Derived of the secrets; the first signs.
  std::vector<std::string> cookie_keys_;
  std::vector<std::string> token_keys_;
};

}  // namespace

std::shared_ptr<const SessionSigner> SignerOf(const std::vector<std::string>& keys, KeyedHash hash) {
  return std::make_shared<const Keys>(keys, std::move(hash));
}

}  // namespace antipode
