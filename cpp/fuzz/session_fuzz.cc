// Session cookies and what responses say to caches. The first line is the content of a cookie, as its signature was
// found right; the second one a header `Cookie`, and the third `Cache-Control`.
#include <algorithm>

#include "antipode/session.h"
#include "holds.h"
#include "propagation/session_content.h"

namespace {

using antipode::fuzz::Must;

constexpr std::size_t kMostBytes = 1'024;
/// What nothing is dropped of.
constexpr std::size_t kShort = 256;

/// Believes everything but what has a tab.
class Gullible final : public antipode::SessionSigner {
 public:
  [[nodiscard]] std::string Sign(antipode::SessionUse /*use*/, std::string_view content) const override {
    return std::string(content) + ".s";
  }
  [[nodiscard]] std::optional<std::string> Unsign(antipode::SessionUse /*use*/, std::string_view value) const override {
    if (value.size() < 2 || value.find('\t') != std::string_view::npos) return std::nullopt;
    return std::string(value.substr(0, value.size() - 2));
  }
};

class Stopped final : public antipode::Clock {
 public:
  [[nodiscard]] double Now() const override { return kNowS; }
  [[nodiscard]] double UnixSeconds() const override { return kNowS; }
  void Spawn(const std::shared_ptr<antipode::Stepper>&) override {}

 private:
  static constexpr double kNowS = 1'800'000'000;
};

std::string_view LineOf(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// What is read of a content is written so that the next request reads the same of it, or a mark.
void MustBeReadAgain(std::string_view content, const antipode::Clock& clock) {
  const antipode::Settings settings;
  std::string why;
  const auto parts = antipode::session::PartsOf(content, clock, settings, &why);
  Must(parts || !why.empty());
  if (!parts) return;
  antipode::Lineage all;
  for (const auto& part : *parts) all = all.Merge(part.lineage);
  const std::string written = antipode::session::ContentOf(*parts, kMostBytes, settings);
  Must(written.size() <= kMostBytes);
  if (all.empty()) {
    Must(written.empty());
    return;
  }
  const auto again = antipode::session::PartsOf(written, clock, settings, &why);
  Must(again.has_value());
  antipode::Lineage same;
  for (const auto& part : *again) same = same.Merge(part.lineage);
  Must(same == all || content.size() > kShort);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto* cookie = new antipode::SessionCookie(std::make_shared<Gullible>());
  static const Stopped clock;
  std::string_view text = antipode::fuzz::Text(data, size);
  const std::string_view content = LineOf(text);
  MustBeReadAgain(content, clock);

  const std::string came(LineOf(text));
  const antipode::Headers headers{{"cookie", "antipode=" + std::string(content) + ".s"}, {"cookie", came}};
  const auto scope = antipode::Extract(headers);
  const auto session_request = cookie->Begin(scope, headers, false, clock);
  scope->Append({"posts", "log", std::uint64_t{7}, 500'000});
  const antipode::Headers answer{{"cache-control", std::string(text)}};
  const auto change = session_request.Change(200, answer);
  if (!change) return 0;
  Must(antipode::session::Caching(200, answer).has_value());
  Must(change->value.size() + std::string_view("antipode=").size() <= kMostBytes);
  return 0;
}
