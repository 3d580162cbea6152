"""A service on loopback that wants a lineage, and whose answer depends on a write."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import antipode
from antipode import Lineage, WriteId

if TYPE_CHECKING:
    from collections.abc import Iterator

ASKED = WriteId("posts", "log", 7, 498_669)
ANSWERED = WriteId("users", "log", 3, 498_669)


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        called = "antipode=" in self.headers.get("baggage", "")
        self.send_response(200 if called else 400)
        self.send_header("antipode-lineage", antipode.serialize(Lineage([ANSWERED])))
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        pass


@contextmanager
def answering() -> Iterator[str]:
    """Where it listens."""
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def request() -> Iterator[None]:
    """A request that depends on a write, and in the end on what it was answered, too."""
    with antipode.scope(Lineage([ASKED])) as scope:
        yield
        assert scope.lineage == Lineage([ASKED, ANSWERED]), scope.lineage
