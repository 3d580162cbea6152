"""A real gRPC service of every kind of method, on a thread pool or on asyncio, and its clients."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

import antipode
from antipode import Lineage, WriteId
from antipode.shim import scope_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

SERVICE = "news.Posts"
KINDS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")


def write(key: str) -> WriteId:
    """What the service says that it wrote for *key*."""
    return WriteId("posts", key, 1, written_hour=490_000)


#: What every request of these tests depends on already.
CAUSE = WriteId("users", "u1", 7, written_hour=490_000)
START = Lineage([CAUSE])


@dataclass
class Seen:
    """What a service has seen.

    Attributes:
        lineages: what each call came with.
        metadata: the entries of each call, in order.
        scopes: of each call.
        entered: set when the method ``wait`` runs.
        leave: lets it go on.
    """

    lineages: list[Lineage] = field(default_factory=list)
    metadata: list[list[tuple[str, Any]]] = field(default_factory=list)
    scopes: list[Any] = field(default_factory=list)
    entered: threading.Event = field(default_factory=threading.Event)
    leave: threading.Event = field(default_factory=threading.Event)

    def call(self, context: Any) -> None:
        """Note a call, and write under the name that the request holds."""
        self.scopes.append(scope_in())
        self.lineages.append(antipode.current())
        self.metadata.append([tuple(each) for each in context.invocation_metadata()])


class _SyncMethods:
    """The methods for a thread pool."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def unary_unary(self, request: bytes, context: Any) -> bytes:
        self._seen.call(context)
        antipode.append(write(request.decode()))
        return request

    def unary_stream(self, request: bytes, context: Any) -> Iterator[bytes]:
        self._seen.call(context)
        for number in range(3):
            antipode.append(write(f"{request.decode()}{number}"))
            yield request

    def stream_unary(self, requests: Iterator[bytes], context: Any) -> bytes:
        self._seen.call(context)
        for request in requests:
            antipode.append(write(request.decode()))
        return b"done"

    def stream_stream(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        self._seen.call(context)
        for request in requests:
            antipode.append(write(request.decode()))
            yield request

    def abort(self, request: bytes, context: Any) -> bytes:
        self._seen.call(context)
        antipode.append(write(request.decode()))
        context.set_trailing_metadata((("app", "kept"), ("app-bin", b"\x00\xff")))
        context.abort(grpc.StatusCode.NOT_FOUND, "no such post")
        return b""

    def crash(self, request: bytes, context: Any) -> bytes:
        self._seen.call(context)
        antipode.append(write(request.decode()))
        raise LookupError(request)

    def wait(self, request: bytes, context: Any) -> bytes:
        self._seen.call(context)
        antipode.append(write(request.decode()))
        self._seen.entered.set()
        self._seen.leave.wait(10)
        return request

    def drip(self, request: bytes, context: Any) -> Iterator[bytes]:
        self._seen.call(context)
        antipode.append(write(request.decode()))
        yield request
        self._seen.entered.set()
        while context.is_active() and not self._seen.leave.wait(0.01):
            yield request


class _AioMethods:
    """The methods for asyncio."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    async def unary_unary(self, request: bytes, context: Any) -> bytes:
        self._seen.call(context)
        antipode.append(write(request.decode()))
        return request

    async def unary_stream(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        self._seen.call(context)
        for number in range(3):
            antipode.append(write(f"{request.decode()}{number}"))
            yield request

    async def stream_unary(self, requests: AsyncIterator[bytes], context: Any) -> bytes:
        self._seen.call(context)
        async for request in requests:
            antipode.append(write(request.decode()))
        return b"done"

    async def stream_stream(
        self, requests: AsyncIterator[bytes], context: Any
    ) -> AsyncIterator[bytes]:
        self._seen.call(context)
        async for request in requests:
            antipode.append(write(request.decode()))
            yield request

    async def abort(self, request: bytes, context: Any) -> bytes:
        self._seen.call(context)
        antipode.append(write(request.decode()))
        context.set_trailing_metadata((("app", "kept"), ("app-bin", b"\x00\xff")))
        await context.abort(grpc.StatusCode.NOT_FOUND, "no such post")
        return b""

    async def crash(self, request: bytes, context: Any) -> bytes:
        self._seen.call(context)
        antipode.append(write(request.decode()))
        raise LookupError(request)

    async def wait(self, request: bytes, context: Any) -> bytes:
        self._seen.call(context)
        antipode.append(write(request.decode()))
        self._seen.entered.set()
        await asyncio.to_thread(self._seen.leave.wait, 10)
        return request

    async def drip(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        self._seen.call(context)
        antipode.append(write(request.decode()))
        yield request
        self._seen.entered.set()
        while not await asyncio.to_thread(self._seen.leave.wait, 0.01):
            yield request


def sync_methods(seen: Seen) -> dict[str, Callable[[Any, Any], Any]]:
    """The methods for a thread pool, by name."""
    return _named(_SyncMethods(seen))


def aio_methods(seen: Seen) -> dict[str, Callable[[Any, Any], Any]]:
    """The methods for asyncio, by name."""
    return _named(_AioMethods(seen))


def _named(methods: Any) -> dict[str, Callable[[Any, Any], Any]]:
    names = [name for name in vars(type(methods)) if not name.startswith("_")]
    return {name: getattr(methods, name) for name in names}


def handler(methods: dict[str, Callable[[Any, Any], Any]], service: str = SERVICE) -> Any:
    """*methods* as a generic handler; others are unary, or streams if they drip."""
    made = {}
    for name, method in methods.items():
        kind = name if name in KINDS else "unary_stream" if name.startswith("drip") else KINDS[0]
        made[name] = getattr(grpc, f"{kind}_rpc_method_handler")(method)
    return grpc.method_handlers_generic_handler(service, made)


@asynccontextmanager
async def served(
    *handlers: Any,
    kind: str,
    interceptors: Sequence[Any] = (),
    options: Sequence[tuple[str, Any]] = (),
    workers: int = 4,
    port: int = 0,
) -> AsyncIterator[int]:
    """A server of *kind* ``sync`` or ``aio`` on loopback; yields its port."""
    with ThreadPoolExecutor(workers) as pool:
        make = grpc.server if kind == "sync" else grpc.aio.server
        server = make(pool, handlers, interceptors=interceptors, options=options)
        port = server.add_insecure_port(f"127.0.0.1:{port}")
        if kind == "sync":
            server.start()
        else:
            await server.start()
        try:
            yield port
        finally:
            stopped = server.stop(None)
            await (asyncio.to_thread(stopped.wait) if kind == "sync" else stopped)


class SyncClient:
    """A synchronous channel, called in threads that share the caller's context."""

    def __init__(self, port: int, **more: Any) -> None:
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", **more)

    async def one(self, name: str, request: Any, **more: Any) -> bytes:
        """The response of a method that has one."""
        made = self._made(name)
        found: bytes = await asyncio.to_thread(made, request, **more)
        return found

    async def many(self, name: str, request: Any, **more: Any) -> list[bytes]:
        """All responses of a method that streams."""
        made = self._made(name)
        return await asyncio.to_thread(lambda: list(made(request, **more)))

    def _made(self, name: str) -> Any:
        return made(self.channel, name)

    async def close(self) -> None:
        """Close the channel."""
        self.channel.close()


class AioClient(SyncClient):
    """A channel of asyncio."""

    def __init__(self, port: int, **more: Any) -> None:
        self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", **more)

    async def one(self, name: str, request: Any, **more: Any) -> bytes:
        """The response of a method that has one."""
        found: bytes = await self._made(name)(request, **more)
        return found

    async def many(self, name: str, request: Any, **more: Any) -> list[bytes]:
        """All responses of a method that streams."""
        return [each async for each in self._made(name)(request, **more)]

    async def close(self) -> None:
        """Close the channel."""
        await self.channel.close()


CLIENTS = {"sync": SyncClient, "aio": AioClient}


def made(channel: Any, name: str, service: str = SERVICE) -> Any:
    """The method *name* of *channel*."""
    kind = name if name in KINDS else "unary_stream" if name.startswith("drip") else KINDS[0]
    return getattr(channel, kind)(f"/{service}/{name}")


@asynccontextmanager
async def called(port: int, kind: str, **more: Any) -> AsyncIterator[SyncClient]:
    """A client of *kind* ``sync`` or ``aio``."""
    async with contextlib.AsyncExitStack() as stack:
        client = CLIENTS[kind](port, **more)
        stack.push_async_callback(client.close)
        yield client
