"""The commands of ``antipode lab`` over HTTP, on loopback."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing.lab import Lab


@contextmanager
def serving(lab: Lab) -> Iterator[str]:
    """A block in which ``POST /COMMAND?ARGUMENT`` does what standard input does; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Where the servers are."""
            self._reply(lab.describe())

        def do_POST(self) -> None:
            """Do a command."""
            if self.headers.get("Origin"):  # A page in a browser is not who may do this.
                self._reply({"ok": False, "error": "not for browsers"}, 403)
                return
            where = urlsplit(self.path)
            words = (where.path.strip("/"), *unquote_plus(where.query).split())
            found = lab.answer(*words)
            self._reply(found, 200 if found["ok"] else 400)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base has it
            """Say nothing: standard error is for people."""

        def _reply(self, found: dict[str, Any], status: int = 200) -> None:
            body = (json.dumps(found) + "\n").encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="antipode-lab", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
