"""The way between the two regions of the stack: forwards ports, and delays what comes back.

Replicas pull, so what a server sends to whom connects here is what its region sends to the other.

Environment:
    LINKS: ``name:listen:host:port`` of each, separated by blanks.
    LAG_MS: the delay to begin with, in milliseconds, of all of them.

One line of JSON to the control port sets delays, such as ``{"redis": 100}``, and is answered with
those of all links. Python 3.9 or later, and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Held = asyncio.Queue[tuple[float, bytes, Callable[[], float]]]
    Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

CONTROL_PORT = 7000
CHUNK_BYTES = 65_536
HELD_CHUNKS = 256

lags_ms: dict[str, float] = {}


async def read(source: asyncio.StreamReader, held: Held, lag_ms: Callable[[], float]) -> None:
    """Note when each chunk came in, until the end; the queue bounds what is held."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            data = await source.read(CHUNK_BYTES)
        except OSError:
            data = b""
        await held.put((loop.time(), data, lag_ms))
        if not data:
            return


async def pump(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, lag_ms: Callable[[], float]
) -> None:
    """Pass on chunks in order, each so many milliseconds after it came in."""
    loop = asyncio.get_running_loop()
    held: Held = asyncio.Queue(HELD_CHUNKS)
    reader = asyncio.create_task(read(source, held, lag_ms))
    try:
        while True:
            came, data, lag = await held.get()
            rest = came + lag() / 1000 - loop.time()
            if rest > 0:
                await asyncio.sleep(rest)
            if not data:
                return
            sink.write(data)
            await sink.drain()
    except OSError:
        return
    finally:
        reader.cancel()
        sink.close()


def forwarder(name: str, host: str, port: int) -> Serve:
    """What serves the connections of one link."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream = await asyncio.open_connection(host, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(
            pump(reader, upstream[1], lambda: 0),
            pump(upstream[0], writer, lambda: lags_ms[name]),
        )

    return serve


async def control(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Set delays."""
    try:
        wanted = json.loads(await reader.readline() or "{}")
        known = set(wanted) <= set(lags_ms)
        lags_ms.update({name: float(lag) for name, lag in wanted.items() if known})
        links = ", ".join(lags_ms)
        answer: dict[str, object] = (
            dict(lags_ms) if known else {"error": f"no such link; there are {links}"}
        )
    except (ValueError, TypeError, AttributeError) as error:
        answer = {"error": str(error)}
    writer.write(json.dumps(answer).encode() + b"\n")
    writer.close()


async def main() -> None:
    """Serve until the container is stopped."""
    anywhere = "0.0.0.0"  # noqa: S104 - of the container; the stack publishes on loopback alone
    servers = [await asyncio.start_server(control, anywhere, CONTROL_PORT)]
    for link in os.environ["LINKS"].split():
        name, listen, host, port = link.split(":")
        lags_ms[name] = float(os.environ.get("LAG_MS") or 0)
        serve = forwarder(name, host, int(port))
        servers.append(await asyncio.start_server(serve, anywhere, int(listen)))
    await asyncio.gather(*(server.serve_forever() for server in servers))


asyncio.run(main())
