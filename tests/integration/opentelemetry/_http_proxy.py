"""A small real HTTP proxy before a service, which passes the headers that a test lets it pass."""

from __future__ import annotations

import contextlib
import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: What a proxy passes that knows the headers of its time, and no others.
KNOWN = frozenset({"accept", "content-length", "content-type", "traceparent", "user-agent"})


class Proxy:
    """Where it listens, and what it passes in both directions: a test may change that."""

    def __init__(self, target: str) -> None:
        self.target = urlsplit(target)
        self.passes: Callable[[str], bool] = lambda name: True
        self.url = ""

    def forward(self, path: str, headers: list[tuple[str, str]]) -> tuple[int, Any, bytes]:
        """One request to the service, and its response."""
        assert self.target.hostname is not None
        service = http.client.HTTPConnection(self.target.hostname, self.target.port, timeout=20)
        with contextlib.closing(service):
            service.putrequest("GET", path)
            for name, value in headers:
                if name.lower() not in ("host", "connection") and self.passes(name.lower()):
                    service.putheader(name, value)
            service.endheaders()
            answer = service.getresponse()
            body = answer.read()
            kept = [(n, v) for n, v in answer.getheaders() if self.passes(n.lower())]
            return answer.status, kept, body


@contextlib.contextmanager
def proxied(target: str) -> Iterator[Proxy]:
    """A proxy before *target*."""
    proxy = Proxy(target)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, headers, body = proxy.forward(self.path, list(self.headers.items()))
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in ("date", "server", "content-length"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
