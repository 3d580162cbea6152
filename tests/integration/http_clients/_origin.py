"""A real HTTP server whose answers a test chooses by the path, failures included."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from antipode import Lineage, WriteId, serialize

HEADER = "antipode-lineage"


def write(key: str) -> WriteId:
    """What a request of ``/write?key=...`` says that it wrote."""
    return WriteId("orders", key, 1, written_hour=490_000)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.server.origin.requests.append((self.path, list(self.headers.items())))
        getattr(self, f"_{url.path.strip('/').replace('-', '_')}")(query)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as it is named
        """Nothing is printed."""

    def _answer(self, status: int, query: dict[str, str], **headers: str) -> None:
        """What was received, with the lineage of ``key`` where the query has one."""
        body = b"" if status in {204, 304} else json.dumps(self.server.origin.requests[-1]).encode()
        self.send_response(status)
        if "key" in query:
            headers[HEADER] = serialize(Lineage([write(query["key"])]))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _write(self, query: dict[str, str]) -> None:
        """The service takes part."""
        self._answer(200, query)

    def _nothing(self, query: dict[str, str]) -> None:
        """The service takes part, and wrote nothing."""
        self._answer(200, query, **{HEADER: "1"})

    def _header(self, query: dict[str, str]) -> None:
        """Whatever header the test wants."""
        self._answer(200, {}, **{HEADER: query["text"]})

    def _status(self, query: dict[str, str]) -> None:
        """Any status."""
        self._answer(int(query["status"]), query)

    def _redirect(self, query: dict[str, str]) -> None:
        """Go elsewhere."""
        self._answer(int(query.get("status", 307)), query, Location=query["to"])

    def _drop(self, _: dict[str, str]) -> None:
        """The request was read; the connection is lost."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _slow(self, query: dict[str, str]) -> None:
        """It answers when the test says so."""
        self.server.origin.reached.set()
        self.server.origin.go_on.wait(20)
        self._answer(200, query)

    def _cut(self, query: dict[str, str]) -> None:
        """The headers come whole, the body does not."""
        self.send_response(200)
        self.send_header(HEADER, serialize(Lineage([write(query["key"])])))
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"begun")
        self._drop(query)

    def _flaky(self, query: dict[str, str]) -> None:
        """The first ``times`` attempts end by ``by``, a status or a lost connection."""
        seen = self.server.origin.seen
        seen[self.path] += 1
        if seen[self.path] > int(query.get("times", "1")):
            self._answer(200, query)
        elif query["by"] == "drop":
            self._drop(query)
        else:
            first = {"key": query["first"]} if "first" in query else {}
            self._answer(int(query["by"]), first)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    origin: Origin

    def handle_error(self, *_: object) -> None:
        """A client that went away is what some tests are about."""


class Origin:
    """The server, and what it received."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        kind = _Server
        if ":" in host:
            kind = type("_Server6", (_Server,), {"address_family": socket.AF_INET6})
        self._server = kind((host, 0), _Handler)
        self._server.origin = self
        self.host = host
        self.port: int = self._server.server_address[1]
        self.requests: list[tuple[str, list[tuple[str, str]]]] = []
        self.seen: Counter[str] = Counter()
        self.reached = threading.Event()
        self.go_on = threading.Event()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def url(self, path: str, host: str | None = None) -> str:
        """Where *path* is, by another name of this machine too."""
        host = host or (f"[{self.host}]" if ":" in self.host else self.host)
        return f"http://{host}:{self.port}/{path}"

    @property
    def service(self) -> str:
        """What calls of this server name it."""
        return f"{self.host}:{self.port}"

    def received(self, name: str, request: int = -1) -> list[str]:
        """The values of the header *name* in one request, the last one."""
        return [value for key, value in self.requests[request][1] if key.lower() == name]

    def close(self) -> None:
        """Stop."""
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
