"""Clients of Redis, beside those whose times the benchmarks measure."""

from __future__ import annotations

from typing import Any

import redis
import redis.asyncio

import antipode
from antipode_shims.redis import instrument_client, uninstrument_client
from benchmarks.costs.overhead._clients import DATASTORE, VALUE, RedisClient, Server
from tests.budgets._loop import OnLoop


class RedisPy(RedisClient):
    """redis-py: the benchmarks' SET and GET, a pipeline, and a write whose lineage leaves."""

    def __init__(self, server: Server, *, instrumented: bool) -> None:
        super().__init__(server, instrumented=instrumented)
        self._instrumented = instrumented

    def pipeline(self, number: int) -> None:
        """Three SETs in a transaction, in one exchange."""
        pipeline = self._client.pipeline()
        for each in range(3):
            pipeline.set(f"overhead-{number + each}", VALUE)
        pipeline.execute()

    def write_and_send(self, number: int) -> None:
        """A SET, and the text that its lineage leaves as."""
        self.write(number)
        if self._instrumented:
            antipode.serialize()


class AsyncRedisPy(OnLoop):
    """redis-py of asyncio: SET, GET and a pipeline of three SETs."""

    def __init__(self, server: Server, *, instrumented: bool) -> None:
        super().__init__()
        self._client: Any = redis.asyncio.Redis(host=server.address.host, port=server.address.port)
        if instrumented:
            instrument_client(self._client, datastore=DATASTORE)

    def write(self, number: int) -> None:
        self.run(self._client.set(f"overhead-{number}", VALUE))

    def read(self, number: int) -> None:
        self.run(self._client.get(f"overhead-{number}"))

    def pipeline(self, number: int) -> None:
        pipeline = self._client.pipeline()
        for each in range(3):
            pipeline.set(f"overhead-{number + each}", VALUE)
        self.run(pipeline.execute())

    def close(self) -> None:
        uninstrument_client(self._client)
        self.run(self._client.aclose())
        self.end()
