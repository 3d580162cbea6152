"""An ASGI application served by uvicorn, over a real socket, in a thread of this process."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Any

import uvicorn

from antipode_testing import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def served(app: Any) -> Iterator[str]:
    """Where *app* is served: a URL without a path."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(
            uvicorn.Config(app, log_config=None, lifespan="off", ws="none", timeout_keep_alive=30)
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            wait_until(lambda: server.started, what="uvicorn to start", timeout_s=20)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()
