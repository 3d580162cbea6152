"""The examples of docs/guides/rabbitmq.md do what the guide says."""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pika
import pytest

import antipode
from antipode import Lineage
from antipode_testing import wait_until

from ._bench import TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import RabbitMQTopology

pytestmark = pytest.mark.store("rabbitmq")

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "rabbitmq.md"
EXCHANGE = "geo.notifications"


@pytest.fixture
def url(antipode_rabbitmq: RabbitMQTopology) -> Iterator[str]:
    """A broker with the exchange of the guide; its queue and exchange are removed afterwards."""
    url = antipode_rabbitmq.url()
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.exchange_declare(EXCHANGE, "topic")
        channel.queue_declare("inbox")
        yield url
        channel.queue_delete("inbox")
        channel.exchange_delete(EXCHANGE)


def run(number: int, url: str, names: dict[str, Any], ends: tuple[str, str] = ("", "")) -> None:
    """Execute one of the guide's examples against this broker; *ends* makes an endless one end."""
    example = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[number]
    example = example.replace(*ends) if ends[0] else example
    exec(example.replace("amqp://guest:guest@localhost/", url), names)  # noqa: S102 - our own


def test_an_existing_service(url: str) -> None:
    """The first example publishes, and its consumer handles the message."""
    names: dict[str, Any] = {}
    run(0, url, names)
    connection, channel = names["connection"], names["channel"]
    handled: list[bytes] = []
    channel.basic_cancel(channel.consumer_tags[0])
    channel.basic_consume("inbox", lambda *got: (names["on_message"](*got), handled.append(got[3])))
    wait_until(
        lambda: connection.process_data_events(0.05) or bool(handled),
        what="the message",
        timeout_s=TIMEOUT_S,
    )
    connection.close()
    assert handled == [b"post:1"]


def test_workers(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The second and third examples handle what is in the queue, over pika and aio-pika."""
    before = signal.getsignal(signal.SIGTERM)
    names: dict[str, Any] = {}
    try:
        with pika.BlockingConnection(pika.URLParameters(url)) as connection:
            connection.channel().basic_publish("", "inbox", b"post:1")
            run(1, url, names, ("worker.run()", "worker.run(timeout=1)"))
            names["connection"].close()
            assert capsys.readouterr().out == "handled post:1\n"
            connection.channel().basic_publish("", "inbox", b"post:2")
            ends = "await worker.run()", "await asyncio.wait_for(worker.run(), 1)"
            with pytest.raises(asyncio.TimeoutError):
                run(2, url, names, ends)
            assert capsys.readouterr().out == "handled post:2\n"
    finally:
        signal.signal(signal.SIGTERM, before)


def test_receipts_and_table_2(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One example begins to listen, the next fulfils a promise, the last reads."""
    names: dict[str, Any] = {}
    run(0, url, names)
    names["connection"].close()
    antipode.shim.unregister("notifications")
    run(3, url, names)
    with antipode.scope():
        promise = antipode.promise("notifications", expires_in_s=60)
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        names.update(channel=connection.channel(), token=promise.token)
        run(4, url, names)
    assert antipode.barrier(Lineage(promises=[promise]), timeout=TIMEOUT_S).ok
    antipode.shim.unregister("notifications")
    run(5, url, names)
    assert names["value"] == b"post:1"
    assert "post:1" in capsys.readouterr().out
