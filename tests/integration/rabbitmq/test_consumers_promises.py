"""Consumers and promised writes: messages wait for a promise that the last of them keeps."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aio_pika
import pytest

import antipode
from antipode import Lineage
from antipode_shims import rabbitmq

from ._bench import NEWS, TIMEOUT_S, counted
from ._workers import SOON, Seen

if TYPE_CHECKING:
    from antipode import Promise

    from ._workers import Posts, Workers

pytestmark = pytest.mark.store("rabbitmq")

KEEPS = "keeps"


def ask(workers: Workers, waiting: int = 20) -> Promise:
    """A request whose messages all carry one promise; the handler of the last shall keep it."""
    with antipode.scope():
        promise = antipode.promise("posts", expires_in_s=600)
        lineage = antipode.current()
    for number in range(waiting):
        with antipode.scope(lineage):
            workers.send(b"%d" % number)
    with antipode.scope(lineage):
        workers.send(promise.token.encode(), type=KEEPS)
    return promise


def test_a_message_does_not_wait_for_the_promise_that_it_keeps(
    workers: Workers, later: Posts
) -> None:
    """Told by ``fulfils=``: that one is handled, and those before it when the promise is kept."""
    promise = ask(workers)

    def fulfils(_method: Any, properties: Any, body: bytes) -> str | None:
        return body.decode() if properties.type == KEEPS else None

    seen = Seen()

    def handle(channel: Any, method: Any, properties: Any, body: bytes) -> None:
        # Noted first: what waits for the write may be handled before this thread goes on.
        seen(channel, method, properties, body)
        if properties.type == KEEPS:
            assert not antipode.current().promises
            later.shim.write("refund", b"", Lineage(), fulfils=promise)
        else:
            assert promise in antipode.current().promises

    workers.work(handle, threads=2, fulfils=fulfils)
    workers.until(lambda: len(seen.messages) == 21, what="all messages")
    workers.rest()
    assert seen.bodies[0] == promise.token.encode()


async def test_nor_does_it_over_aio_pika(workers: Workers, later: Posts) -> None:
    """The asyncio twin."""
    promise = ask(workers)
    handled: list[bytes] = []
    done = asyncio.Event()

    async def handle(message: Any) -> None:
        if message.type == KEEPS:
            assert not antipode.current().promises
            later.shim.write("refund", b"", Lineage(), fulfils=promise)
        handled.append(message.body)
        if len(handled) == 21:
            done.set()

    def fulfils(message: Any) -> str | None:
        return message.body.decode() if message.type == KEEPS else None

    async with await aio_pika.connect(workers.topology.url(), timeout=TIMEOUT_S) as connection:
        channel = await connection.channel()
        async with rabbitmq.consume_async(
            channel, workers.queue, handle, datastore=NEWS, delay_s=SOON, fulfils=fulfils
        ):
            await asyncio.wait_for(done.wait(), TIMEOUT_S)
    assert handled[0] == promise.token.encode()


def test_what_waits_for_an_abandoned_promise_is_given_up(workers: Workers, later: Posts) -> None:
    """It was deferred while the promise might be kept; then it is a dead letter, which says so."""
    promise = ask(workers, waiting=1)
    before = counted("message_deferred")
    workers.work(Seen(), max_attempts=1000)
    workers.until(lambda: counted("message_deferred") >= before + 4, what="deferrals")
    assert antipode.abandon(promise)
    why = workers.letter()[1].headers["antipode-dead-letter"]
    workers.rest()
    assert why["reason"] == "dependency_lost"
    assert why["outcomes"][0].startswith(f"{promise} abandoned")


@pytest.mark.parametrize("on_error", ["raise", "dead_letter"])
def test_a_token_that_is_none_counts_as_a_failed_handler(workers: Workers, on_error: str) -> None:
    """What ``fulfils=`` says is of the application: a wrong token loses no message."""
    workers.publish(b"body")
    workers.work(Seen(), fulfils=lambda *_: "no token", on_error=on_error)
    if on_error == "raise":
        with pytest.raises(antipode.LineageDecodeError):
            workers.until(lambda: False, what="the error")
        workers.until(lambda: workers.depth() == 1, what="the message")
    else:
        why = workers.letter()[1].headers["antipode-dead-letter"]
        assert why["reason"] == "handler_failed"
        assert why["message"].startswith("LineageDecodeError")
