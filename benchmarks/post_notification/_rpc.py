"""Calls between services: JSON over HTTP/1.1 with kept connections, from the standard library."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._tracing import Tracing

Payload = dict[str, Any]
Method = Callable[[Payload], Payload]

LOOPBACK = "127.0.0.1"
_OK = 200
_FAILED = 500
_COLON_AND_NEWLINE = 4


class RpcError(Exception):
    """A call failed; the message names the service."""


class RpcServer(ThreadingHTTPServer):
    """Serves methods by name, each connection in a thread of its own."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, methods: Mapping[str, Method], tracing: Tracing) -> None:
        """Listen on a port of the operating system's choice."""
        self.methods = methods
        self.tracing = tracing
        super().__init__((LOOPBACK, 0), _Handler)

    @property
    def port(self) -> int:
        """Where it listens, on the loopback interface."""
        return int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # One segment for each response, sent at once.
    wbufsize = -1
    disable_nagle_algorithm = True
    server: RpcServer

    def do_POST(self) -> None:
        """Answer one call."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers: dict[str, list[str]] = {}
        for name, value in self.headers.items():
            headers.setdefault(name.lower(), []).append(value)
        back: dict[str, str] = {}
        tracing = self.server.tracing
        with tracing.serving(headers):
            try:
                answer = self.server.methods[self.path[1:]](json.loads(body))
                status = _OK
            except Exception as error:  # noqa: BLE001 - the caller is told
                answer = {"error": f"{type(error).__name__}: {error}"}
                status = _FAILED
            tracing.response(back)
        self._send(status, back, json.dumps(answer).encode())

    def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class RpcClient:
    """Calls one service, over a kept connection for each calling thread.

    Attributes:
        sent_bytes: of headers that an application sets and of bodies, both ways.
    """

    def __init__(self, service: str, port: int, tracing: Tracing, *, timeout_s: float) -> None:
        """Prepare to call *service*; connections are opened at the first call of a thread.

        Args:
            service: its name, for messages and for the lineage.
            port: where it listens.
            tracing: what travels with calls.
            timeout_s: seconds that a call may take.
        """
        self.sent_bytes = 0
        self._service = service
        self._port = port
        self._tracing = tracing
        self._timeout_s = timeout_s
        self._local = threading.local()
        self._counting = threading.Lock()

    def call(self, method: str, payload: Payload) -> Payload:
        """Call a method.

        Raises:
            RpcError: the service failed, or did not answer in time.
        """
        headers: dict[str, str] = {}
        self._tracing.request(headers)
        body = json.dumps(payload).encode()
        connection = self._connection()
        try:
            connection.request("POST", f"/{method}", body, headers)
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise RpcError(f"{self._service}: {type(error).__name__}: {error}") from error
        back = dict(response.getheaders())
        self._count(headers, body)
        self._count(back, answer)
        self._tracing.received(back, self._service)
        result: Payload = json.loads(answer)
        if response.status != _OK:
            raise RpcError(f"{self._service}: {result['error']}")
        return result

    def close(self) -> None:
        """Close the calling thread's connection. Idempotent."""
        self._connection().close()

    def _connection(self) -> http.client.HTTPConnection:
        held: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if held is None:
            held = http.client.HTTPConnection(LOOPBACK, self._port, timeout=self._timeout_s)
            self._local.connection = held
        return held

    def _count(self, headers: Mapping[str, str], body: bytes) -> None:
        size = len(body)
        size += sum(len(k) + len(v) + _COLON_AND_NEWLINE for k, v in headers.items())
        with self._counting:
            self.sent_bytes += size
