#include "propagation/session_content.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "antipode/text.h"
#include "lineage/grammar.h"
#include "propagation/headers.h"
#include "request/untrusted_text.h"
#include "runtime/observers.h"

namespace antipode::session {
namespace {

constexpr char kBetween = '!';
constexpr std::size_t kMostDigits = 8;
constexpr double kSecondsPerHour = 3'600;

std::optional<std::int64_t> SecondOf(std::string_view digits) {
  if (digits.size() > kMostDigits) return std::nullopt;
  const auto number = grammar::ParseNumber(digits);
  return number ? std::optional(static_cast<std::int64_t>(*number)) : std::nullopt;
}

std::string Start(const Part& part) {
  std::string text;
  grammar::AppendNumber(text, static_cast<std::uint64_t>(part.second));
  return text += ':';
}

std::string TextOf(const std::vector<Part>& parts) {
  std::string text;
  for (const Part& part : parts) {
    if (!text.empty()) text += kBetween;
    text += Start(part) + part.lineage.Serialize();
  }
  return text;
}

Lineage Allowed(const Lineage& lineage, const std::optional<std::set<std::string>>& egress) {
  if (!egress) return lineage;
  Lineage allowed = lineage.Allowed(*egress);
  if (allowed.incomplete() != lineage.incomplete()) Count("dropped_for_egress");
  return allowed;
}

/// Newest first, one for each second, each with what it adds to the newer ones.
std::vector<Part> Joined(const std::vector<Part>& parts, const Settings& settings) {
  std::map<std::int64_t, Lineage, std::greater<>> seconds;
  for (const Part& part : parts) {
    Lineage& held = seconds[part.second];
    held = held.Merge(Allowed(part.lineage, settings.egress));
  }
  std::vector<Part> found;
  Lineage newer;
  for (const auto& [second, lineage] : seconds) {
    Lineage whole = newer.Merge(lineage);
    Lineage added = whole.Beyond(newer);
    if (!added.empty()) found.push_back({second, std::move(added)});
    newer = std::move(whole);
  }
  return found;
}

}  // namespace

std::optional<std::vector<Part>> PartsOf(std::string_view content, const Clock& clock, const Settings& settings,
                                         std::string* why) {
  const double now_s = clock.UnixSeconds();
  const auto latest_s = static_cast<std::uint64_t>(now_s + settings.max_promise.count());
  std::vector<Part> parts;
  for (const std::string_view text : text::Split(content, kBetween)) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const auto second = SecondOf(text.substr(0, colon));
    DecodeFault fault;
    const auto lineage = Lineage::TryDeserialize(text.substr(std::min(colon + 1, text.size())), &fault);
    if (!second || !lineage) {
      *why = second ? fault.code : "a part without a second";
      return std::nullopt;
    }
    parts.push_back({std::min(*second, static_cast<std::int64_t>(now_s)), lineage->Received(clock.Hour(), latest_s)});
  }
  return parts;
}

std::vector<Part> Living(const std::vector<Part>& parts, std::int64_t now_s, double max_age_s) {
  std::vector<Part> living;
  for (const Part& part : parts) {
    if (static_cast<double>(now_s - part.second) <= max_age_s) living.push_back(part);
  }
  return living;
}

Lineage WorthCarrying(const Lineage& added, std::int64_t now_s, double max_age_s) {
  const double oldest_h = (static_cast<double>(now_s) - max_age_s) / kSecondsPerHour;
  Lineage young = added;
  for (const WriteId& write : added.writes()) {
    if (write.written_hour > 0 && static_cast<double>(write.written_hour) + 1 < oldest_h) young = young.Remove(write);
  }
  return young.Beyond(Lineage(LineageParts{{}, {}, {}, young.open_branches(), {}})).WithoutNotes();
}

std::string ContentOf(const std::vector<Part>& parts, std::size_t room, const Settings& settings) {
  std::vector<Part> found = Joined(parts, settings);
  std::string content = TextOf(found);
  while (content.size() > room && found.size() > 1) {
    const Lineage older = found.back().lineage;
    found.pop_back();
    found.back().lineage = found.back().lineage.Merge(older);
    content = TextOf(found);
  }
  if (content.size() <= room) return content;
  std::string start = Start(found.front());
  if (start.size() > room) throw LineageTooLarge(room);
  Settings left = settings;
  left.max_lineage_bytes = room - start.size() + grammar::kMemberBytes;
  left.egress.reset();  // It has been applied.
  return start += LeavingText(found.front().lineage, left);
}

std::vector<std::string_view> CookiesOf(const Headers& headers, std::string_view name) {
  std::vector<std::string_view> found;
  for (const std::string_view header : ValuesOf(headers, "cookie")) {
    for (const std::string_view pair : text::Split(header, ';')) {
      const std::size_t equals = pair.find('=');
      if (equals == std::string_view::npos || text::Trimmed(pair.substr(0, equals)) != name) continue;
      std::string_view value = text::Trimmed(pair.substr(equals + 1));
      while (!value.empty() && value.front() == '"') value.remove_prefix(1);
      while (!value.empty() && value.back() == '"') value.remove_suffix(1);
      found.push_back(value);
    }
  }
  return found;
}

std::vector<std::string_view> TokensOf(const Headers& headers) {
  std::vector<std::string_view> found;
  for (const std::string_view header : ValuesOf(headers, "antipode-session")) {
    for (const std::string_view each : text::Split(header, ',')) {
      if (const std::string_view token = text::Trimmed(each); !token.empty()) found.push_back(token);
    }
  }
  return found;
}

}  // namespace antipode::session
