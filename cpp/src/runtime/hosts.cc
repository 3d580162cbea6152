#include "runtime/hosts.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#include "antipode/text.h"

namespace antipode::hosts {
namespace {

constexpr std::string_view kBelow = "*.";
/// Of addresses of pages, patterns and lists: none of it is part of a host's name.
constexpr std::string_view kForeign = " \t\r\n\v\f/\\?#@*,";
constexpr unsigned kMaxPort = 65'535;

struct Parts {
  std::string_view host;
  std::optional<unsigned> port;
  bool whole = true;  ///< Whether that is all there is.
};

std::optional<unsigned> Port(std::string_view digits) {
  if (digits.empty() || digits.size() > 5) return std::nullopt;
  unsigned port = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    port = port * 10 + static_cast<unsigned>(c - '0');
  }
  return port;
}

Parts Split(std::string_view text) {
  text = text::Trimmed(text);
  if (!text.empty() && text[0] == '[') {  // An IPv6 address.
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return {text.substr(1), std::nullopt, false};
    const std::string_view host = text.substr(1, end - 1);
    const std::string_view rest = text.substr(end + 1);
    if (rest.empty()) return {host, std::nullopt, true};
    const auto port = rest[0] == ':' ? Port(rest.substr(1)) : std::nullopt;
    return {host, port, port.has_value()};
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos) {
    return {text, std::nullopt, true};  // No port, or an IPv6 address without brackets.
  }
  const auto port = Port(text.substr(colon + 1));
  return {text.substr(0, colon), port, port.has_value()};
}

std::string_view WithoutBelow(std::string_view entry) {
  return text::StartsWith(entry, kBelow) ? entry.substr(kBelow.size()) : entry;
}

/// The code points of UTF-8, in lower case where they are ASCII; none where it is no UTF-8.
std::optional<std::vector<std::uint32_t>> CodePoints(std::string_view label) {
  std::vector<std::uint32_t> points;
  for (std::size_t i = 0; i < label.size();) {
    const auto lead = static_cast<unsigned char>(label[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 0;
    if (length == 0 || i + length > label.size()) return std::nullopt;
    std::uint32_t point = length == 1 ? lead : lead & (0xFFU >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) {
      point = (point << 6U) | (static_cast<unsigned char>(label[i + k]) & 0x3FU);
    }
    points.push_back(point);
    i += length;
  }
  return points;
}

/// Punycode of RFC 3492, section 6.3.
std::string Punycode(const std::vector<std::uint32_t>& points) {
  constexpr std::uint32_t kBase = 36;
  constexpr std::uint32_t kTMin = 1;
  constexpr std::uint32_t kTMax = 26;
  const auto digit = [](std::uint32_t d) { return static_cast<char>(d < 26 ? 'a' + d : '0' + (d - 26)); };
  std::string found;
  for (const std::uint32_t point : points) {
    if (point < 0x80) found += static_cast<char>(point);
  }
  const auto basic = static_cast<std::uint32_t>(found.size());
  std::uint32_t handled = basic;
  if (basic > 0) found += '-';
  std::uint32_t n = 128;
  std::uint32_t delta = 0;
  std::uint32_t bias = 72;
  while (handled < points.size()) {
    std::uint32_t next = std::numeric_limits<std::uint32_t>::max();
    for (const std::uint32_t point : points) {
      if (point >= n) next = std::min(next, point);
    }
    delta += (next - n) * (handled + 1);
    n = next;
    for (const std::uint32_t point : points) {
      if (point < n) ++delta;
      if (point != n) continue;
      std::uint32_t q = delta;
      for (std::uint32_t k = kBase;; k += kBase) {
        const std::uint32_t t = k <= bias ? kTMin : k >= bias + kTMax ? kTMax : k - bias;
        if (q < t) break;
        found += digit(t + (q - t) % (kBase - t));
        q = (q - t) / (kBase - t);
      }
      found += digit(q);
      std::uint32_t adapted = handled == basic ? delta / 700 : delta / 2;
      adapted += adapted / (handled + 1);
      std::uint32_t k = 0;
      for (; adapted > ((kBase - kTMin) * kTMax) / 2; k += kBase) adapted /= kBase - kTMin;
      bias = k + (kBase - kTMin + 1) * adapted / (adapted + 38);
      delta = 0;
      ++handled;
    }
    ++delta;
    ++n;
  }
  return found;
}

/// A name as it is looked up. Letters outside of ASCII are taken as they are: in lower case and composed.
std::string Ascii(std::string_view host) {
  std::string found;
  for (const std::string_view label : text::Split(host, '.')) {
    if (label.data() != host.data()) found += '.';
    const bool plain =
        std::all_of(label.begin(), label.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    const auto points = plain ? std::nullopt : CodePoints(label);
    found += points ? "xn--" + Punycode(*points) : std::string(label);
  }
  return found;
}

/// One spelling for each host; what cannot be one stays as it is, and matches itself.
std::string Normal(std::string_view host) {
  std::string lower = text::Lower(host);
  if (!lower.empty() && lower.back() == '.') lower.pop_back();
  if (lower.find(':') != std::string::npos) {
    in6_addr address{};
    if (inet_pton(AF_INET6, lower.c_str(), &address) != 1) return lower;
    char spelled[INET6_ADDRSTRLEN];
    return inet_ntop(AF_INET6, &address, spelled, sizeof spelled);
  }
  return Ascii(lower);
}

bool Matches(std::string_view entry, const std::string& host, std::optional<unsigned> port) {
  const Parts parts = Split(WithoutBelow(entry));
  if (parts.port && parts.port != port) return false;
  const std::string name = Normal(parts.host);
  if (!text::StartsWith(entry, kBelow)) return host == name;
  return host.size() > name.size() + 1 && text::EndsWith(host, "." + name);
}

std::pair<std::string_view, std::string_view> HostAndPath(std::string_view entry) {
  entry = text::Trimmed(entry);
  const std::size_t slash = entry.find('/');
  if (slash == std::string_view::npos) return {entry, {}};
  std::string_view path = entry.substr(slash);
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  return {entry.substr(0, slash), path};
}

}  // namespace

bool Refused(std::string_view entry) {
  const Parts parts = Split(WithoutBelow(entry));
  const bool known = !parts.port || (*parts.port > 0 && *parts.port <= kMaxPort);
  const bool named = parts.host.find_first_not_of('.') != std::string_view::npos;
  return !parts.whole || !known || !named || parts.host.find_first_of(kForeign) != std::string_view::npos;
}

bool Names(const std::set<std::string>& allowed, std::string_view host, std::optional<unsigned> port) {
  const Parts parts = Split(host);
  const std::string bare = Normal(parts.host);
  if (!port) port = parts.port;
  return std::any_of(allowed.begin(), allowed.end(),
                     [&](const std::string& entry) { return Matches(entry, bare, port); });
}

bool PeerRefused(std::string_view entry) {
  const auto [host, path] = HostAndPath(entry);
  return Refused(host) || path.find_first_of("?# ") != std::string_view::npos;
}

std::pair<Answers, std::string> Expected(const std::map<std::string, Answers>& peers, std::string_view host,
                                         std::optional<unsigned> port, std::string_view path) {
  using Rank = std::tuple<bool, bool, std::size_t, std::size_t>;
  std::optional<Rank> best;
  std::pair<Answers, std::string> found{Answers::kAuto, ""};
  for (const auto& [entry, answers] : peers) {
    const auto [name, above] = HostAndPath(entry);
    const bool below =
        path == above || (text::StartsWith(path, above) && path.size() > above.size() && path[above.size()] == '/');
    if (!below || !Names({std::string(name)}, host, port)) continue;
    const Rank rank{!text::StartsWith(name, kBelow), Split(WithoutBelow(name)).port.has_value(), name.size(),
                    above.size()};
    if (best && *best > rank) continue;
    best = rank;
    found = {answers, std::string(above)};
  }
  return found;
}

}  // namespace antipode::hosts
