"""Calls over asyncio channels that are given up at any moment: what was sent is never forgotten."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import grpc

import antipode
from antipode import Lineage, WriteId
from antipode.integrations.grpc import aio_client_interceptors, aio_server_interceptor
from antipode.shim import Incomplete

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

POST = WriteId("posts", "p", 1, written_hour=490_000)
#: Calls, each given up after one more step of the event loop than the last, up to some; up to as
#: many more where the service got none of them: its thread may be late.
CALLS, STEPS = 400, 40
#: The call that is not given up.
LAST = -1


async def test_a_call_that_is_given_up_leaves_a_doubt_at_once() -> None:
    """Whoever gives up a call that a service got finds its lineage incomplete there and then.

    gRPC forgets a call whose awaiter is cancelled between its start and the first await of its
    answer: nobody cancels it, and it ends by itself.
    """
    came: set[int] = set()
    doubted: set[int] = set()

    async def once(request: bytes, context: object) -> bytes:
        came.add(int(request))
        await asyncio.sleep(0.1)
        return request

    server = grpc.aio.server(interceptors=[aio_server_interceptor()])
    handlers = {"Once": grpc.unary_unary_rpc_method_handler(once)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("given.Up", handlers),))
    target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    interceptors = aio_client_interceptors()
    async with grpc.aio.insecure_channel(target, interceptors=interceptors) as channel:
        method = channel.unary_unary("/given.Up/Once")
        await method(str(LAST).encode())  # Now there is a connection.

        async def call(number: int) -> None:
            await method(str(number).encode())

        for number in itertools.count():
            if number >= CALLS and came - {LAST}:
                break
            with antipode.scope():
                task = asyncio.ensure_future(call(number))
                for _ in range(number % (STEPS * (1 + number // CALLS))):
                    await asyncio.sleep(0)
                task.cancel()
                try:
                    await task
                except asyncio.CancelledError:
                    if Incomplete("given.Up", "in_doubt") in antipode.current().incomplete:
                        doubted.add(number)
        await method(str(LAST).encode())  # Whatever was sent before has come by now.
    await server.stop(0)
    assert came - {LAST} <= doubted


async def test_requests_are_written_while_the_call_runs() -> None:
    """A call whose requests are written one by one ends when its writer says so."""

    async def joined(requests: AsyncIterator[bytes], context: object) -> bytes:
        antipode.append(POST)
        return b"".join([request async for request in requests])

    server = grpc.aio.server(interceptors=[aio_server_interceptor()])
    handlers = {"Joined": grpc.stream_unary_rpc_method_handler(joined)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("given.Up", handlers),))
    target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    interceptors = aio_client_interceptors()
    async with grpc.aio.insecure_channel(target, interceptors=interceptors) as channel:
        with antipode.scope():
            call = channel.stream_unary("/given.Up/Joined")()
            await asyncio.wait_for(call.write(b"a"), 10)
            await asyncio.wait_for(call.write(b"b"), 10)
            during = antipode.deserialize(
                antipode.serialize()
            ).open_branches  # While it is written.
            await asyncio.wait_for(call.done_writing(), 10)
            assert await asyncio.wait_for(call, 10) == b"ab"
            assert antipode.current() == Lineage([POST])
    await server.stop(0)
    assert during == 1
