// Level 3: session cookies, what they are set with, and what a request that anybody can send does not do.
#include "antipode/session.h"

#include "antipode/observer.h"
#include "headers_json.h"
#include "settings_guard.h"
#include "vectors.h"
#ifdef ANTIPODE_SESSION_KEYS
#include "antipode/session_keys.h"
#endif

namespace antipode {
namespace {

using vectors::Case;
using vectors::Json;

class Sessions : public testing::TestWithParam<Case> {};

TEST_P(Sessions, AgeAndAreSetRemovedOrLeftAlone) {
  const SettingsGuard settings;
  const Json& requests = GetParam().vector.at("requests");
  const Json found = json::DecideHeaders("sessions", GetParam().vector).value().at("requests");
  ASSERT_EQ(found.size(), requests.size());
  for (std::size_t n = 0; n < requests.size(); ++n) {
    EXPECT_EQ(json::LineageOf(found[n].at("starts")), json::LineageOf(requests[n].at("starts")));
    EXPECT_EQ(found[n].at("counts"), requests[n].value("counts", Json::object()));
    EXPECT_EQ(found[n].at("content"), requests[n].at("content"));
    EXPECT_EQ(found[n].at("token"), requests[n].value("token", found[n].at("token")));
    EXPECT_EQ(found[n].at("lasts"), !requests[n].at("content").is_null() && requests[n].at("content") != "");
    if (requests[n].at("content").is_null()) continue;
    EXPECT_EQ(found[n].at("cache_control"), requests[n].at("cache_control"));
  }
}

INSTANTIATE_TEST_SUITE_P(L3, Sessions, testing::ValuesIn(vectors::Cases("L3-headers", "sessions")), vectors::NameOf);

/// Believes everything, and signs with a full stop.
class Gullible final : public SessionSigner {
 public:
  [[nodiscard]] std::string Sign(SessionUse /*use*/, std::string_view content) const override {
    return std::string(content) + ".";
  }
  [[nodiscard]] std::optional<std::string> Unsign(SessionUse /*use*/, std::string_view value) const override {
    return std::string(value.substr(0, value.rfind('.')));
  }
};

SessionCookie Named(const SessionOptions& options) { return SessionCookie(std::make_shared<Gullible>(), options); }

const WriteId kWrite{"posts", "log", std::uint64_t{7}, SystemClock().Hour()};

/// The `Set-Cookie` of a response whose request wrote.
std::string SetBy(const SessionCookie& cookie, bool on_tls) {
  const auto scope = std::make_shared<Scope>();
  const auto session_request = cookie.Begin(scope, {}, on_tls);
  scope->Append(kWrite);
  return session_request.Change(200, {}).value().set_cookie;
}

/// Without the value.
std::string Attributes(const std::string& set_cookie) { return set_cookie.substr(set_cookie.find("; ") + 2); }

TEST(SessionCookie, IsOfThisHostAndForNoScript) {
  const SettingsGuard settings;
  const SessionCookie cookie = Named({});
  EXPECT_EQ(SetBy(cookie, false).substr(0, 9), "antipode=");
  EXPECT_EQ(Attributes(SetBy(cookie, false)), "Max-Age=60; Path=/; HttpOnly; SameSite=Lax");
  EXPECT_EQ(Attributes(SetBy(cookie, true)), "Max-Age=60; Path=/; Secure; HttpOnly; SameSite=Lax");
}

TEST(SessionCookie, HasTheNameAndThePlaceThatItIsGiven) {
  Settings longer;
  longer.session_max_age = std::chrono::milliseconds(90'500);
  const SettingsGuard settings(longer);
  const SessionCookie cookie = Named({"shop", "/shop", "example.org", true});
  EXPECT_EQ(SetBy(cookie, false).substr(0, 5), "shop=");
  EXPECT_EQ(Attributes(SetBy(cookie, false)),
            "Max-Age=91; Path=/shop; Domain=example.org; Secure; HttpOnly; SameSite=Lax");
  EXPECT_EQ(Attributes(SetBy(Named({"shop", "/", {}, false}), true)), "Max-Age=91; Path=/; HttpOnly; SameSite=Lax");
}

TEST(SessionCookie, ThatABrowserWouldNotTakeIsRefused) {
  for (const char* name : {"", "a b", "a=b", "a;b", "\xC3\xA9", "\"a\""}) {
    EXPECT_THROW(Named({name, "/", {}, {}}), ConfigurationError) << name;
  }
  EXPECT_THROW(Named({std::string(65, 'a'), "/", {}, {}}), ConfigurationError);
  EXPECT_NO_THROW(Named({std::string(64, 'a'), "/", {}, {}}));
  EXPECT_THROW(Named({"a", "/; Domain=evil.org", {}, {}}), ConfigurationError);
  EXPECT_THROW(Named({"a", "/", "evil.org\r\nSet-Cookie: b=c", {}}), ConfigurationError);
}

TEST(SessionRequest, PutsItsCookieIntoAResponseOnce) {
  const SettingsGuard settings;
  const SessionCookie cookie = Named({});
  const auto scope = std::make_shared<Scope>();
  auto session_request = cookie.Begin(scope, {}, false);
  Headers reading;
  session_request.Inject(200, reading);
  EXPECT_TRUE(reading.empty()) << "nothing was written";
  scope->Append(kWrite);
  Headers response{{"Cache-Control", "no-cache"}, {"Set-Cookie", "other=1"}, {"Cache-Control", "must-revalidate"}};
  session_request.Inject(200, response);
  EXPECT_EQ(response.at(0),
            (std::pair<std::string, std::string>("Cache-Control", "no-cache, must-revalidate, private")));
  ASSERT_EQ(response.size(), 3U);
  EXPECT_EQ(response.at(1).second, "other=1");
  EXPECT_EQ(response.at(2).second.substr(0, 9), "antipode=");
}

std::string NowAndPost(std::uint64_t version) {
  const auto scope = std::make_shared<Scope>();
  const auto session_request = Named({}).Begin(scope, {}, false);
  scope->Append({"posts", "log", version, SystemClock().Hour()});
  const std::string value = session_request.Change(200, {}).value().value;
  return value;
}

std::size_t WritesOf(const Headers& headers) {
  const auto scope = std::make_shared<Scope>();
  (void)Named({}).Begin(scope, headers, false);
  return scope->lineage().writes().size();
}

TEST(SessionRequest, ReadsAllHeadersOfCookiesHoweverTheyAreSpelled) {
  const SettingsGuard settings;
  const std::string value = NowAndPost(7);
  EXPECT_EQ(WritesOf({{"Cookie", "a=b;antipode=" + value}}), 1U);
  EXPECT_EQ(WritesOf({{"cookie", "a=b"}, {"COOKIE", " antipode = \"" + value + "\" ; c"}}), 1U);
  EXPECT_EQ(WritesOf({{"cookie", "xantipode=" + value}}), 0U);
  EXPECT_EQ(WritesOf({{"x-cookie", "antipode=" + value}}), 0U);
  EXPECT_EQ(WritesOf({{"cookie", "Antipode=" + value}}), 0U) << "names of cookies have their case";
}

std::uint64_t Counted(const std::string& metric) {
  const auto metrics = Metrics();
  const auto found = metrics.find({metric, ""});
  return found == metrics.end() ? 0 : found->second;
}

TEST(SessionRequest, IgnoresAPairWithoutAValue) {
  const std::uint64_t before = Counted("session_forged");
  EXPECT_EQ(WritesOf({{"cookie", "antipode; antipode ;"}}), 0U);
  EXPECT_EQ(Counted("session_forged"), before);
}

TEST(SessionRequest, ReadsEightCookiesAndCountsTheRestAsForged) {
  const SettingsGuard settings;
  std::string header;
  for (int n = 0; n < 8; ++n) header += "antipode=x; ";
  const std::uint64_t before = Counted("session_forged");
  EXPECT_EQ(WritesOf({{"cookie", header + "antipode=" + NowAndPost(7)}}), 0U);
  EXPECT_EQ(Counted("session_forged"), before + 1) << "the eight are signed, and unreadable";
}

TEST(SessionRequest, IgnoresACookieThatIsTooLong) {
  const std::uint64_t before = Counted("session_forged");
  EXPECT_EQ(WritesOf({{"cookie", "antipode=" + std::string(1'025, 'x')}}), 0U);
  EXPECT_EQ(Counted("session_forged"), before + 1);
}

TEST(SessionRequest, FitsACookieInto1024BytesAndMarksTheRest) {
  const SettingsGuard settings;
  const SessionCookie cookie = Named({});
  const auto scope = std::make_shared<Scope>();
  const auto session_request = cookie.Begin(scope, {}, false);
  for (std::uint64_t n = 0; n < 100; ++n) {
    scope->Append({"posts", "log" + std::to_string(n), n, SystemClock().Hour()});
  }
  const std::string value = session_request.Change(200, {}).value().value;
  EXPECT_LE(value.size(), 1'024U - 9U);
  EXPECT_GE(value.size(), 1'024U - 40U);
  const auto next = std::make_shared<Scope>();
  (void)cookie.Begin(next, {{"cookie", "antipode=" + value}}, false);
  EXPECT_EQ(next->lineage().incomplete().count({"posts", "size"}), 1U);
}

TEST(SessionRequest, CountsWhatIsWrittenAfterTheResponse) {
  const SettingsGuard settings;
  const auto scope = std::make_shared<Scope>();
  const auto session_request = Named({}).Begin(scope, {}, false);
  EXPECT_EQ(session_request.Change(200, {}), std::nullopt);
  const auto before = Metrics()[{"after_response_write", "posts"}];
  scope->Append(kWrite);
  EXPECT_EQ((Metrics()[{"after_response_write", "posts"}]), before + 1);
}

/// Cannot sign, as where a library of cryptography refuses.
class Broken final : public SessionSigner {
 public:
  [[nodiscard]] std::string Sign(SessionUse /*use*/, std::string_view content) const override {
    if (!content.empty()) throw std::runtime_error("no HMAC");
    return ".";
  }
  [[nodiscard]] std::optional<std::string> Unsign(SessionUse, std::string_view) const override { return std::nullopt; }
};

TEST(SessionRequest, LetsTheResponseGoOutWithoutACookieThatCannotBeSigned) {
  const SettingsGuard settings;
  const auto scope = std::make_shared<Scope>();
  const auto session_request = SessionCookie(std::make_shared<Broken>()).Begin(scope, {}, false);
  scope->Append(kWrite);
  EXPECT_EQ(session_request.Change(200, {}), std::nullopt);
}

#ifdef ANTIPODE_SESSION_KEYS

class SessionSignatures : public testing::TestWithParam<Case> {};

TEST_P(SessionSignatures, AreThoseOfServicesInOtherLanguages) {
  const Json& vector = GetParam().vector;
  const Json found = json::DecideHeaders("session_signatures", vector).value();
  EXPECT_EQ(found, (Json{{"value", vector.at("value")}, {"read", vector.at("read")}}));
}

INSTANTIATE_TEST_SUITE_P(L3, SessionSignatures, testing::ValuesIn(vectors::Cases("L3-headers", "session_signatures")),
                         vectors::NameOf);

TEST(SessionKeys, OfFewerThan16CharactersAreRefused) {
  EXPECT_THROW(SessionKeys({}), ConfigurationError);
  EXPECT_THROW(SessionKeys({std::string(15, 'k')}), ConfigurationError);
  EXPECT_THROW(SessionKeys({std::string(16, 'k'), "short"}), ConfigurationError);
  EXPECT_THROW(SessionKeys({"\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"}), ConfigurationError)
      << "eight characters in sixteen bytes";
  EXPECT_NO_THROW(SessionKeys({std::string(16, 'k')}));
}

TEST(SessionKeys, AreChangedWithoutLosingACookie) {
  const std::string former(16, 'a');
  const std::string later(16, 'b');
  const std::string value = SessionKeys({former, later})->Sign(SessionUse::kCookie, "content");
  EXPECT_EQ(SessionKeys({later, former})->Unsign(SessionUse::kCookie, value), "content");
  EXPECT_EQ(SessionKeys({later})->Unsign(SessionUse::kCookie, value), std::nullopt);
}

TEST(SessionKeys, BelieveOneSpellingOfASignature) {
  const auto signer = SessionKeys({std::string(16, 'k')});
  const std::string value = signer->Sign(SessionUse::kCookie, "a.b");
  EXPECT_EQ(signer->Unsign(SessionUse::kCookie, value), "a.b");
  EXPECT_EQ(signer->Unsign(SessionUse::kCookie, value + "="), std::nullopt);
  EXPECT_EQ(signer->Unsign(SessionUse::kCookie, value.substr(0, value.size() - 1)), std::nullopt);
  EXPECT_EQ(signer->Unsign(SessionUse::kCookie, ""), std::nullopt);
  EXPECT_EQ(signer->Unsign(SessionUse::kCookie, "."), std::nullopt);
  EXPECT_EQ(signer->Unsign(SessionUse::kCookie, std::string(1'024, '.')), std::nullopt);
}

#endif

}  // namespace
}  // namespace antipode
