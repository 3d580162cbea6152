"""C++ over TLS, which ends in front of a real broker."""

from __future__ import annotations

import asyncio
import ssl
import threading
import uuid
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING, Any

import pika
import pytest

from antipode import Lineage
from tests.agent.client import AgentProcess, RemoteAntipode, RemoteShim, StoreError
from tests.conformance._agents import command
from tests.integration._certificates import certificates

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from antipode_testing import Address, RabbitMQTopology

pytestmark = [pytest.mark.store("rabbitmq"), pytest.mark.slow]


class Terminator:
    """A port that speaks TLS to clients with a certificate, and plainly to a server."""

    def __init__(self, server: Address, files: dict[str, str]) -> None:
        self._server = server
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=files["ca"])
        self._context.load_cert_chain(files["cert"], files["key"])
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._listening = self._run(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        )
        self.port: int = self._listening.sockets[0].getsockname()[1]

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _serve(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        server, there = await asyncio.open_connection(*self._server)
        await asyncio.gather(_pump(client, there), _pump(server, back))

    async def _end(self) -> None:
        self._listening.close()
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def close(self) -> None:
        """End it, and what goes through it."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Copy until either ends."""
    with suppress(OSError), closing(sink):
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()


def test_a_broker_that_requires_certificates(
    antipode_rabbitmq: RabbitMQTopology, tmp_path: Path
) -> None:
    """Messages go and come, and receipts are heard; without the right certificates none is."""
    files, stranger = (certificates(tmp_path / name) for name in ("broker", "stranger"))
    exchange = f"tls.{uuid.uuid4().hex}"
    with ExitStack() as stack:
        plain = stack.enter_context(
            pika.BlockingConnection(pika.URLParameters(antipode_rabbitmq.url()))
        )
        channel: Any = plain.channel()
        channel.exchange_declare(exchange, "topic")
        channel.queue_declare(exchange)
        channel.queue_bind(exchange, exchange, "#")
        stack.callback(channel.queue_delete, exchange)
        stack.callback(channel.exchange_delete, exchange)
        terminator = stack.enter_context(
            closing(Terminator(antipode_rabbitmq.address("us"), files))
        )
        remote = RemoteAntipode(stack.enter_context(AgentProcess(command("cpp"))))

        def opened(tls: dict[str, str], role: str = "primary") -> RemoteShim:
            url = f"amqps://guest:guest@localhost:{terminator.port}/%2f"
            server = {"url": url, "exchange": exchange, "queue": exchange, "tls": tls}
            made = RemoteShim(remote, "rabbitmq", "news", server, reads_from=role)
            return stack.enter_context(closing(made))

        reader = opened(files, "replica")
        with remote.scope():
            written = opened(files).write("k", b"1", Lineage())
            assert remote.barrier(timeout=20.0).ok
        assert reader.read("k")[0] == b"1"
        assert len(written) == 1
        for tls in ({"ca": files["ca"]}, {**files, "ca": stranger["ca"]}):
            with pytest.raises(StoreError):
                opened(tls).write("k", b"2")
