"""Services over every transport, in one process. Each answer must hold what its own request wrote.

Run as a program it prints the ports on which it listens, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import grpc
import uvicorn
from fastapi import BackgroundTasks, FastAPI, Request, Response
from flask import Flask
from werkzeug.serving import WSGIRequestHandler, make_server

import antipode
from antipode import WriteId
from antipode.integrations import asgi, wsgi
from antipode.integrations import grpc as lineages

STORE = "load"
#: The longest that a request works, in seconds.
WORK_S = 0.004
#: The numbers of all requests that came.
_came: set[int] = set()


def wrote(what: str, number: int) -> None:
    """Enter a write into the lineage of the request *number*."""
    antipode.append(WriteId(STORE, f"{what}{number}", 1))


async def handle(number: int, manner: str) -> None:
    """Work for a while, alone and in branches, with other requests in between."""
    _came.add(number)
    wrote("s", number)
    await asyncio.sleep(random.random() * WORK_S)
    if manner == "branches":
        await asyncio.gather(_branch(number), asyncio.to_thread(wrote, "u", number))
    if manner == "error":
        msg = "as asked for"
        raise RuntimeError(msg)


async def _branch(number: int) -> None:
    await asyncio.sleep(random.random() * WORK_S)
    wrote("t", number)


def handle_here(number: int, manner: str) -> None:
    """The twin of :func:`handle` in a thread."""
    _came.add(number)
    wrote("s", number)
    threading.Event().wait(random.random() * WORK_S)
    if manner == "branches":
        with ThreadPoolExecutor(1) as pool:
            pool.submit(copy_context().run, wrote, "t", number).result()
        wrote("u", number)
    if manner == "error":
        msg = "as asked for"
        raise RuntimeError(msg)


def http_app() -> Any:
    """FastAPI, whose background tasks write after the response."""
    app = FastAPI()

    @app.exception_handler(RuntimeError)
    async def _(request: Request, error: RuntimeError) -> Response:
        # uvicorn would close the connection, maybe under the client's next request.
        return Response(str(error), 500)

    @app.get("/{number}/{manner}")
    async def _(number: int, manner: str, tasks: BackgroundTasks) -> dict[str, int]:
        if manner == "late":
            tasks.add_task(wrote, "l", number)
        await handle(number, manner)
        return {"number": number}

    return asgi.AntipodeMiddleware(app)


def threaded_app() -> Any:
    """Flask."""
    app = Flask("load")

    @app.get("/came/<int:number>")
    def _(number: int) -> dict[str, bool]:
        return {"came": number in _came}

    @app.get("/<int:number>/<manner>", endpoint="work")
    def _(number: int, manner: str) -> dict[str, int]:
        handle_here(number, manner)
        return {"number": number}

    return wsgi.AntipodeMiddleware(app.wsgi_app)


def rpc_handlers() -> grpc.GenericRpcHandler:
    """The methods of the asyncio server: one answer, and an answer in parts."""

    async def once(request: bytes, context: Any) -> bytes:
        number, manner = request.decode().split("/")
        await handle(int(number), manner)
        return request

    async def parts(request: bytes, context: Any) -> Any:
        number, manner = request.decode().split("/")
        yield request
        await handle(int(number), manner)
        yield request

    return grpc.method_handlers_generic_handler(
        "load.Asyncio",
        {
            "Once": grpc.unary_unary_rpc_method_handler(once),
            "Parts": grpc.unary_stream_rpc_method_handler(parts),
        },
    )


def threaded_rpc_handlers() -> grpc.GenericRpcHandler:
    """The method of the server with threads."""

    def once(request: bytes, context: Any) -> bytes:
        number, manner = request.decode().split("/")
        handle_here(int(number), manner)
        return request

    return grpc.method_handlers_generic_handler(
        "load.Threads", {"Once": grpc.unary_unary_rpc_method_handler(once)}
    )


def listening() -> socket.socket:
    """A socket on a port that the system chose."""
    return socket.create_server(("127.0.0.1", 0), backlog=2048)


class _Quiet(WSGIRequestHandler):
    """Requests over connections that stay, without a line for each."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - the base's name
        pass


async def serve() -> None:
    """Listen on every transport until standard input ends."""
    logging.disable(logging.ERROR)  # Errors that were asked for.
    http = listening()
    server = uvicorn.Server(
        uvicorn.Config(http_app(), log_level="critical", lifespan="off", timeout_keep_alive=600)
    )
    rpc = grpc.aio.server(interceptors=[lineages.aio_server_interceptor()])
    rpc.add_generic_rpc_handlers((rpc_handlers(),))
    threaded_rpc = grpc.server(ThreadPoolExecutor(64), interceptors=[lineages.server_interceptor()])
    threaded_rpc.add_generic_rpc_handlers((threaded_rpc_handlers(),))
    wsgi_server = make_server("127.0.0.1", 0, threaded_app(), threaded=True, request_handler=_Quiet)
    ports = {
        "http": http.getsockname()[1],
        "rpc": rpc.add_insecure_port("127.0.0.1:0"),
        "threaded_rpc": threaded_rpc.add_insecure_port("127.0.0.1:0"),
        "threaded_http": wsgi_server.server_port,
    }
    await rpc.start()
    threaded_rpc.start()
    threading.Thread(target=wsgi_server.serve_forever, daemon=True).start()
    serving = asyncio.create_task(server.serve([http]))
    sys.stdout.write(f"{json.dumps(ports)}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await serving
    await rpc.stop(1)
    threaded_rpc.stop(1).wait()
    wsgi_server.shutdown()


if __name__ == "__main__":
    asyncio.run(serve())
