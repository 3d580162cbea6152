// Two requests of one browser: what the first one writes, the second
// one depends on.
#include <antipode/session_keys.h>

#include <iostream>

namespace {

/// One request of a service: headers in, headers of its response out.
antipode::Headers Serve(const antipode::SessionCookie& cookie,
                        const antipode::Headers& headers, bool writes) {
  const antipode::ScopeGuard request(antipode::Extract(headers));
  const auto session_request = cookie.Begin(request.scope(), headers,
                                            true);  // It came over TLS.
  std::cout << "depends on " << antipode::Current().writes().size()
            << '\n';

  // It writes. A shim calls this once its store has acknowledged a
  // write.
  if (writes) antipode::RecordWrite({"posts", "log", std::uint64_t{7}});

  antipode::Headers response{{"content-type", "text/html"}};
  session_request.Inject(200, response);  // The response starts.
  return response;
}

}  // namespace

int main() {
  const antipode::SessionCookie cookie(antipode::SessionKeys(
      {"a secret of this service", "the one before it"}));
  const antipode::Headers answer = Serve(cookie, {}, true);
  std::string kept;
  for (const auto& [name, value] : answer) {
    std::cout << name << ": " << value.substr(value.find("; ") + 1)
              << '\n';
    if (name == "set-cookie") kept = value.substr(0, value.find(';'));
  }
  Serve(cookie, {{"cookie", kept}}, false);
}
