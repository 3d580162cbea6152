"""FastAPI under uvicorn: an endpoint that does nothing, called over a socket that stays open."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HEAD = (
    b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: */*\r\naccept-encoding: gzip, deflate\r\n"
    b"user-agent: benchmark\r\n"
    b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"
)
_ASKING = b"baggage: antipode=1\r\n"
_ANSWER = b"antipode-lineage: 1\r\n"
_END = b"\r\n\r\n"


def instrument(app: Any) -> None:  # noqa: ANN401 - an application
    """The propagator, and the middleware of FastAPI alone."""
    from antipode import instrument
    from antipode.integrations.asgi import instrument_app

    instrument()
    instrument_app(app)


@contextmanager
def serve(*, antipode: bool, cover: Callable[[Any], None] = instrument) -> Iterator[int]:
    """The application, with OpenTelemetry's SDK and its instrumentation of FastAPI.

    Args:
        antipode: whether the library is there.
        cover: what makes it so.
    """
    import uvicorn

    app = _app()
    if antipode:
        cover(app)
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        log_level="warning",
        access_log=False,
        timeout_keep_alive=600,  # The other side may take its time.
    )
    server = uvicorn.Server(config)
    # With the protocol named, asyncio knows that it may turn the delay of small segments off.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # Who connects before uvicorn is ready waits.
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def _app() -> Any:  # noqa: ANN401 - an application
    from fastapi import FastAPI
    from opentelemetry import trace
    from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
    from opentelemetry.sdk.trace import TracerProvider

    trace.set_tracer_provider(TracerProvider())
    app = FastAPI()

    @app.get("/")
    async def empty() -> None:
        """Do nothing."""

    FastAPIInstrumentor.instrument_app(app)
    return app


@contextmanager
def calling(port: int, *, antipode: bool, lineage: bytes = b"") -> Iterator[Callable[[], None]]:
    """The same request to either side, as lean as it gets: a client would hide what is added."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def ask(more: bytes, *, answered: bool) -> None:
            connection.sendall(_HEAD + more + b"\r\n")
            got = connection.recv(4096)
            while not got.endswith(_END + b"null"):
                piece = connection.recv(4096)
                if not piece:
                    msg = "the server closed the connection"
                    raise ConnectionError(msg)
                got += piece
            if not got.startswith(b"HTTP/1.1 200 ") or (_ANSWER in got) is not answered:
                msg = f"answered {got!r}"
                raise ValueError(msg)

        ask(_ASKING, answered=antipode)  # Who adds nothing answers who asks.
        yield lambda: ask(lineage, answered=antipode and bool(lineage))
