"""gRPC alone: a server and channels of both APIs, unary and streamed."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from answering import ANSWERED, ASKED, request

import antipode
from antipode import Lineage
from antipode.integrations import grpc as lineages

if TYPE_CHECKING:
    from collections.abc import Iterator

antipode.instrument()
lineages.instrument()


def unary(asked: bytes, _context: Any) -> bytes:
    assert ASKED in antipode.current()
    antipode.transfer(Lineage([ANSWERED]))
    return asked


def streamed(asked: bytes, context: Any) -> Iterator[bytes]:
    yield unary(asked, context)


async def asynchronous(place: str) -> None:
    async with grpc.aio.insecure_channel(place) as channel:
        assert await channel.unary_unary("/Service/unary")(b"1") == b"1"


HANDLERS = {
    "unary": grpc.unary_unary_rpc_method_handler(unary),
    "streamed": grpc.unary_stream_rpc_method_handler(streamed),
}
server = grpc.server(ThreadPoolExecutor(2))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Service", HANDLERS),))
place = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
server.start()
with grpc.insecure_channel(place) as channel:
    with request():
        assert channel.unary_unary("/Service/unary")(b"1") == b"1"
    with request():
        assert [*channel.unary_stream("/Service/streamed")(b"1")] == [b"1"]
with request():
    asyncio.run(asynchronous(place))
server.stop(None).wait()
