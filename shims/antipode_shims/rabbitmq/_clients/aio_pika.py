"""Instrumented aio-pika channels.

An aio-pika channel publishes and consumes through an aiormq channel, which a robust one replaces
whenever it connects again. So the aiormq channel is what is instrumented, when the aio-pika
channel hands it out: exchanges and queues that exist already are covered, and each opening has
incarnations of its own.
"""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

from antipode_shims._messages.message import message_of
from antipode_shims._messages.publisher import Publications

from .channel_state import AROUND_PROPERTIES, State, state_of, stored

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from antipode import WriteId


#: How much less than of a body a frame takes of properties; and aiormq may add the message's id.
_MORE_THAN_CONTENT = AROUND_PROPERTIES - 8 + 33


def instrument(channel: Any, state: State) -> None:
    """Make *channel* hand out instrumented aiormq channels."""
    original = channel.get_underlay_channel

    @functools.wraps(original)
    async def get_underlay_channel() -> Any:
        underlay = await original()
        if state.active and state_of(underlay) is None:
            _instrument_underlay(underlay, state)
        return underlay

    state.replace(channel, "get_underlay_channel", get_underlay_channel)


def _instrument_underlay(underlay: Any, parent: State) -> None:
    publications = Publications(parent.datastore, parent.publications.sequence_by)
    state = State(publications, receipts=parent.receipts, exchange=parent.exchange)
    parent.opened(underlay, state)
    state.replace(underlay, "basic_publish", _publishing(underlay, state, parent))
    state.replace(underlay, "basic_consume", _consuming(underlay, parent))
    state.replace(underlay, "tx_select", _transacting(underlay, state))


def _publishing(underlay: Any, state: State, parent: State) -> Callable[..., Awaitable[Any]]:
    original = underlay.basic_publish

    @functools.wraps(original)
    async def basic_publish(
        body: bytes,
        *,
        exchange: str = "",
        routing_key: str = "",
        properties: Any = None,
        **kwargs: Any,
    ) -> Any:
        names = {"exchange": exchange, "routing_key": routing_key}
        if not parent.active:
            return await original(body, properties=properties, **names, **kwargs)
        to = exchange or routing_key
        if not state.hears(exchange):
            sent, _ = _outfitted(underlay, state, properties, None, to)
            return await original(body, properties=sent, **names, **kwargs)
        write = state.name(exchange, routing_key, confirmed=underlay.publisher_confirms)
        sent, write = _outfitted(underlay, state, properties, write, to)
        try:
            result = await original(body, properties=sent, **names, **kwargs)
        except BaseException as error:
            if certainly_absent(error):
                state.refused(write)
            else:
                state.in_doubt(write)
            raise
        if is_returned(result):
            state.refused(write)
        else:
            state.minted(write)
        return result

    return basic_publish


def _outfitted(
    underlay: Any, state: State, properties: Any, write: WriteId | None, to: str
) -> tuple[Any, WriteId | None]:
    """A copy of the properties with our headers, and the name that they have."""
    if properties is None:
        import aiormq

        # What aiormq sends for None.
        properties = aiormq.spec.Basic.Properties(delivery_mode=1)
    sent = copy.copy(properties)
    frame = _frame(underlay, sent)
    sent.headers, write = state.headers(properties.headers, write, destination=to, **frame)
    return sent, write


def stored_in(underlay: Any, message: Any) -> dict[str, Any]:
    """The headers of a message that Table 2 writes, with a lineage that fits in its frame.

    Raises:
        ValueError: its properties have no room for it.
    """
    return stored(message.headers, **_frame(underlay, message.properties))


def _frame(underlay: Any, properties: Any) -> dict[str, Any]:
    """How many bytes of properties a frame takes, and how to count them with other headers."""

    def size(headers: dict[str, Any]) -> int:
        properties.headers = headers
        return len(properties.marshal())

    return {"room": underlay.max_content_size - _MORE_THAN_CONTENT, "size": size}


def certainly_absent(error: BaseException) -> bool:
    """Whether *error* of a publication proves that the broker has no message of it.

    Returned, or never sent. All else leaves it in doubt: a timeout, a cancellation, and a nack, for
    another queue than the one that refused may have it.
    """
    import aiormq.exceptions

    return isinstance(error, (aiormq.exceptions.PublishError, TypeError, ValueError))


def is_returned(result: object) -> bool:
    """Whether the broker returned the message, with ``on_return_raises=False``."""
    from aiormq.abc import DeliveredMessage

    return isinstance(result, DeliveredMessage)


def _consuming(underlay: Any, parent: State) -> Callable[..., Awaitable[Any]]:
    original = underlay.basic_consume

    @functools.wraps(original)
    async def basic_consume(
        queue: str, consumer_callback: Callable[..., Awaitable[Any]], **kwargs: Any
    ) -> Any:
        async def in_scope(delivered: Any) -> Any:
            if not parent.active:
                return await consumer_callback(delivered)
            headers = delivered.header.properties.headers
            came = delivered.delivery
            to = came.exchange or came.routing_key or ""
            with message_of(headers, parent.datastore, to):
                return await consumer_callback(delivered)

        return await original(queue, in_scope, **kwargs)

    return basic_consume


def _transacting(underlay: Any, state: State) -> Callable[..., Awaitable[Any]]:
    original = underlay.tx_select

    @functools.wraps(original)
    async def tx_select(*args: Any, **kwargs: Any) -> Any:
        state.transactional = True
        return await original(*args, **kwargs)

    return tx_select
