// What a response says to caches (RFC 9111): one that a shared cache may keep must set no cookie.
#include <algorithm>
#include <map>

#include "antipode/text.h"
#include "propagation/session_content.h"

namespace antipode::session {
namespace {

constexpr int kNotModified = 304;
constexpr std::string_view kCacheControl = "cache-control";

/// With `""` in place of each quoted string, whose end may be missing.
std::string WithoutQuotes(std::string_view value) {
  std::string plain;
  for (std::size_t i = 0; i < value.size(); ++i) {
    plain += value[i];
    if (value[i] != '"') continue;
    plain += '"';
    while (++i < value.size() && value[i] != '"') {
      if (value[i] == '\\') ++i;
    }
  }
  return plain;
}

using Directives = std::map<std::string, std::string>;

/// In lower case, with their arguments.
Directives DirectivesOf(std::string_view value) {
  Directives found;
  const std::string plain = WithoutQuotes(text::Lower(value));
  for (const std::string_view each : text::Split(plain, ',')) {
    const std::size_t equals = std::min(each.find('='), each.size());
    const std::string_view argument = each.substr(std::min(equals + 1, each.size()));
    found[std::string(text::Trimmed(each.substr(0, equals)))] = text::Trimmed(argument);
  }
  return found;
}

/// Whether shared caches must not keep it; `private="name"` says so of one header alone.
bool IsPrivate(const Directives& said) {
  const auto found = said.find("private");
  return said.count("no-store") != 0 || (found != said.end() && found->second.empty());
}

/// Whether caches are allowed to keep it, not only to ask again each time.
bool HasLifetime(const Directives& said, bool expires) {
  if (said.count("public") != 0) return true;
  bool stated = false;
  for (const char* name : {"max-age", "s-maxage"}) {
    const auto age = said.find(name);
    if (age == said.end()) continue;
    stated = true;
    if (age->second.find_first_not_of('0') != std::string::npos) return true;
  }
  return expires && !stated && said.count("no-cache") == 0;
}

/// Of a header for caches of one kind, which counts more than what the response says to all.
bool IsTargeted(std::string_view name) {
  constexpr std::string_view kEnd = "-cache-control";
  return name == "surrogate-control" || (name.size() > kEnd.size() && text::EndsWith(name, kEnd));
}

}  // namespace

std::optional<std::string> Caching(int status, const Headers& headers) {
  std::string given;
  bool expires = false;
  for (const auto& [name, value] : headers) {
    const std::string lower = text::Lower(name);
    if (IsTargeted(lower) && !IsPrivate(DirectivesOf(value))) return std::nullopt;
    expires = expires || lower == "expires";
    if (lower != kCacheControl) continue;
    if (!given.empty()) given += ", ";
    given += value;
  }
  const Directives said = DirectivesOf(given);
  if (IsPrivate(said)) return given;
  if (status == kNotModified || HasLifetime(said, expires)) return std::nullopt;
  return given.empty() ? "private" : given + ", private";
}

}  // namespace antipode::session
