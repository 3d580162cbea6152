"""A service of AWS that refuses whatever it is asked."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def answering(*answers: tuple[int, str]) -> Iterator[str]:
    """A service with these answers, each a status and a code, and the last one from then on.

    Yields its URL. A ``HEAD`` has no content, as on AWS; a ``POST`` is taken for one of DynamoDB.
    """
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer("")

        def do_GET(self) -> None:
            self._answer("<Error><Code>%s</Code><Message>refused</Message></Error>")

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.do_GET()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer('{"__type": "x#%s", "message": "refused"}')

        def _answer(self, text: str) -> None:
            status, code = left.pop(0) if len(left) > 1 else left[0]
            content = text.replace("%s", code).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
