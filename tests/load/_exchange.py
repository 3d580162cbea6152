"""Very many calls at once over mixed transports, each in a request of its own."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import aiohttp
import grpc
import httpx
import requests

import antipode
from antipode import WriteId
from antipode.integrations import aiohttp as aiohttp_lineages
from antipode.integrations import grpc as grpc_lineages
from antipode.integrations import httpx as httpx_lineages
from antipode.integrations import requests as requests_lineages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    Call = Callable[[int, str], Awaitable[None]]
    ThreadCall = Callable[[int, str], None]

STORE = "load"
#: How many requests run at once: tasks of one event loop, and threads.
TASKS, THREADS = 968, 32
#: What a request may do beside its plain work, and how often.
MANNERS = {"plain": 70, "branches": 20, "error": 5, "late": 5}
#: One in so many asyncio calls is given up before it is answered, as likely as not.
GIVE_UP = 200
GIVE_UP_S = 0.02
#: The share of threads: as fast as they can they would leave the event loop next to nothing.
BY_THREADS = 0.2
#: How much of the rest each asyncio transport carries.
SHARES = {"rpc": 40, "parts": 15, "aiohttp": 35, "httpx": 10}


@dataclass
class Exchanged:
    """What became of the calls. Thread-safe."""

    ended: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    #: Calls that were given up without a doubt: none of them may have been sent.
    undoubted: dict[int, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self, transport: str, number: int, manner: str, *, given_up: bool) -> None:
        """Judge the lineage of the current request, whose call is over."""
        lineage = antipode.deserialize(antipode.serialize())
        found = {write.key for write in lineage}
        own = {f"c{number}", f"s{number}"}
        if manner == "branches":
            own |= {f"t{number}", f"u{number}"}
        if given_up:
            right = found <= own and f"c{number}" in found
        else:
            right = found == own and not lineage.incomplete and not lineage.open_branches
        with self._lock:
            self.ended["given up" if given_up else transport] += 1
            # A stream of gRPC that nobody reads any more runs on, as a branch.
            doubted = lineage.incomplete or (transport == "parts" and lineage.open_branches)
            if given_up and not doubted and found != own:
                self.undoubted[number] = transport
            if not right and len(self.wrong) < 20:
                self.wrong.append(f"{transport} {manner} {number}: {lineage!r}, not {sorted(own)}")

    def __str__(self) -> str:
        ended = ", ".join(f"{n} {how}" for how, n in sorted(self.ended.items()))
        return f"{self.ended.total()} responses ({ended}), {len(self.wrong)} wrong"


@contextmanager
def services() -> Iterator[dict[str, int]]:
    """The services in a process of their own; their ports."""
    command = [sys.executable, "-m", "tests.load._exchange_server"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.stdin.close()
            process.wait(30)


def exchange(responses: int, ports: dict[str, int], *, seed: int) -> Exchanged:
    """Make calls until *responses* have ended."""
    done = Exchanged()
    by_tasks = round(responses * (1 - BY_THREADS))
    of_threads = count(by_tasks)
    threads = ThreadPoolExecutor(THREADS, thread_name_prefix="load-calls")
    in_threads = [
        threads.submit(_thread, done, of_threads, responses, ports, random.Random(f"{seed}/{n}"))
        for n in range(THREADS)
    ]
    asyncio.run(_tasks(done, count(), by_tasks, ports, random.Random(seed)))
    for each in in_threads:
        each.result(60)
    threads.shutdown()
    for number, transport in done.undoubted.items():
        url = f"http://127.0.0.1:{ports['threaded_http']}/came/{number}"
        if requests.get(url, timeout=60).json()["came"]:
            done.wrong.append(
                f"{transport} {number} was given up without a doubt, and had been sent"
            )
    return done


async def _tasks(
    done: Exchanged, numbers: count[int], most: int, ports: dict[str, int], rng: random.Random
) -> None:
    target = f"127.0.0.1:{ports['rpc']}"
    interceptors = grpc_lineages.aio_client_interceptors()
    # The pool of httpx closes what has been idle for long, now and then under the next request:
    # httpcore's issue 1110.
    limits = httpx.Limits(max_connections=100, max_keepalive_connections=100, keepalive_expiry=None)
    base = f"http://127.0.0.1:{ports['http']}"
    async with (
        grpc.aio.insecure_channel(target, interceptors=interceptors) as channel,
        aiohttp.ClientSession(base, connector=aiohttp.TCPConnector(limit=400)) as session,
        httpx.AsyncClient(base_url=base, limits=limits, timeout=60) as client,
    ):
        aiohttp_lineages.instrument_client(session)
        httpx_lineages.instrument_client(client)
        once = channel.unary_unary("/load.Asyncio/Once")
        in_parts = channel.unary_stream("/load.Asyncio/Parts")

        async def rpc(number: int, manner: str) -> None:
            await once(f"{number}/{manner}".encode())

        async def parts(number: int, manner: str) -> None:
            async for _ in in_parts(f"{number}/{manner}".encode()):
                pass

        async def by_aiohttp(number: int, manner: str) -> None:
            async with session.get(f"/{number}/{manner}") as response:
                await response.read()

        async def by_httpx(number: int, manner: str) -> None:
            await client.get(f"/{number}/{manner}")

        calls = {"rpc": rpc, "parts": parts, "aiohttp": by_aiohttp, "httpx": by_httpx}
        await asyncio.gather(*(_task(done, numbers, most, calls, rng) for _ in range(TASKS)))


async def _task(
    done: Exchanged,
    numbers: count[int],
    most: int,
    calls: dict[str, Call],
    rng: random.Random,
) -> None:
    while (number := next(numbers)) < most:
        (transport,) = rng.choices(list(SHARES), SHARES.values())
        (manner,) = rng.choices(list(MANNERS), MANNERS.values())
        if manner == "late" and transport in {"rpc", "parts"}:
            manner = "plain"
        given_up = False
        with antipode.scope():
            antipode.append(WriteId(STORE, f"c{number}", 1))
            call = calls[transport](number, manner)
            try:
                if rng.randrange(GIVE_UP):
                    await call
                else:
                    await asyncio.wait_for(call, GIVE_UP_S)
            except asyncio.TimeoutError:
                given_up = True
            except grpc.aio.AioRpcError:
                if manner != "error":
                    raise
            done.check(transport, number, manner, given_up=given_up)


def _thread(
    done: Exchanged, numbers: count[int], most: int, ports: dict[str, int], rng: random.Random
) -> None:
    base = f"http://127.0.0.1:{ports['threaded_http']}"
    with (
        requests.Session() as session,
        grpc.insecure_channel(f"127.0.0.1:{ports['threaded_rpc']}") as plain,
    ):
        requests_lineages.instrument_client(session)
        channel = grpc_lineages.instrument_channel(plain)
        once = channel.unary_unary("/load.Threads/Once")

        def by_rpc(number: int, manner: str) -> None:
            once(f"{number}/{manner}".encode())

        def by_requests(number: int, manner: str) -> None:
            session.get(f"{base}/{number}/{manner}", timeout=60)

        calls: dict[str, ThreadCall] = {"threaded rpc": by_rpc, "requests": by_requests}
        while (number := next(numbers)) < most:
            transport = rng.choice(list(calls))
            (manner,) = rng.choices(list(MANNERS), MANNERS.values())
            manner = "plain" if manner == "late" else manner
            with antipode.scope():
                antipode.append(WriteId(STORE, f"c{number}", 1))
                try:
                    calls[transport](number, manner)
                except grpc.RpcError:
                    if manner != "error":
                        raise
                done.check(transport, number, manner, given_up=False)
