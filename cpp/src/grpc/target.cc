#include "grpc/target.h"

#include <algorithm>
#include <array>

namespace antipode::rpc {
namespace {

/// How gRPC's messages begin where it found no connection.
constexpr std::array<std::string_view, 4> kUnsent{"failed to connect to all addresses", "errors resolving ",
                                                  "DNS resolution failed", "empty address list"};

bool Begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

bool IsNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> Addresses(std::string_view list) {
  std::vector<std::string> addresses;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    addresses.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return addresses;
}

}  // namespace

std::vector<std::string> HostsOf(std::string_view target) {
  const std::size_t colon = target.find(':');
  const std::string_view scheme = target.substr(0, colon);
  std::string_view rest = colon == std::string_view::npos ? "" : target.substr(colon + 1);
  if (scheme == "unix" || scheme == "unix-abstract" || scheme == "vsock") return {"localhost"};
  if (scheme == "ipv4" || scheme == "ipv6") {
    rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
    auto addresses = Addresses(rest);
    return addresses.empty() ? std::vector<std::string>{std::string(target)} : addresses;
  }
  if (Begins(rest, "//")) {  // scheme://authority/endpoint
    const std::size_t slash = rest.find('/', 2);
    return {slash == std::string_view::npos ? "" : std::string(rest.substr(slash + 1))};
  }
  const bool resolver = scheme == "dns" || scheme == "xds" || scheme == "passthrough";
  if (resolver && !rest.empty() && !IsNumber(rest)) return {std::string(rest)};
  return {std::string(target)};
}

bool ResolvesPolicies(std::string_view target) { return Begins(target, "xds:") || Begins(target, "google-c2p:"); }

std::string ServiceOf(std::string_view method) {
  if (!method.empty() && method.front() == '/') method.remove_prefix(1);
  const std::size_t slash = method.rfind('/');
  return std::string(slash == std::string_view::npos ? "" : method.substr(0, slash));
}

bool SaysUnsent(std::string_view message) {
  return std::any_of(kUnsent.begin(), kUnsent.end(), [&](std::string_view begin) { return Begins(message, begin); });
}

}  // namespace antipode::rpc
