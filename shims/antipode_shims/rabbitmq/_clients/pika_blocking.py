"""Instrumented ``pika`` BlockingChannel: the application keeps its object and its calls."""

from __future__ import annotations

import copy
import functools
import struct
from typing import TYPE_CHECKING, Any

from antipode_shims._messages.message import message_of

from .channel_state import AROUND_PROPERTIES, stored
from .libraries import pika

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from antipode import WriteId

    from .channel_state import State

#: Reply codes with which a broker closes a channel instead of taking a message.
_REFUSALS = frozenset({403, 404})


def instrument(channel: Any, state: State) -> None:
    """Replace what *channel* publishes, consumes and begins transactions with."""
    state.replace(channel, "basic_publish", _publishing(channel, state))
    state.replace(channel, "basic_consume", consuming(channel, state))
    state.replace(channel, "tx_select", transacting(channel, state))


def with_headers(properties: Any, headers: Mapping[str, Any] | None) -> Any:
    """A copy of BasicProperties (None: new ones) with *headers*; the original is not touched."""
    sent = pika().BasicProperties() if properties is None else copy.copy(properties)
    sent.headers = headers
    return sent


def outfitted(
    channel: Any, state: State, properties: Any, write: WriteId | None, to: str
) -> tuple[Any, WriteId | None]:
    """The properties to send in place of the application's, and the name that they have.

    Args:
        channel: pika's, of callbacks, whose connection knows how large its frames are.
        state: the channel's.
        properties: the application's; None for none.
        write: the message's own write; None for one that is not recorded.
        to: its destination.
    """
    given = None if properties is None else properties.headers
    frame = _frame(channel, properties)
    headers, write = state.headers(given, write, destination=to, **frame)
    return with_headers(properties, headers), write


def stored_in(channel: Any, properties: Any, headers: dict[str, Any]) -> Any:
    """The properties of a message that Table 2 writes, with *headers* that fit in its frame.

    Raises:
        ValueError: they have no room for its lineage.
    """
    return with_headers(properties, stored(headers, **_frame(channel, properties)))


def _frame(channel: Any, properties: Any) -> dict[str, Any]:
    """How many bytes of properties a frame takes, and how to count them with other headers."""

    def size(headers: dict[str, Any]) -> int:
        return sum(map(len, with_headers(properties, headers).encode()))

    return {"room": channel.connection.params.frame_max - AROUND_PROPERTIES, "size": size}


def _publishing(channel: Any, state: State) -> Callable[..., None]:
    original = channel.basic_publish

    @functools.wraps(original)
    def basic_publish(
        exchange: str,
        routing_key: str,
        body: Any,
        properties: Any = None,
        mandatory: bool = False,  # noqa: FBT001, FBT002 - pika's signature
    ) -> None:
        if not state.active:
            original(exchange, routing_key, body, properties, mandatory)
            return
        inner = channel._impl  # noqa: SLF001 - the only way to the size of frames
        to = exchange or routing_key
        if not state.hears(exchange):
            sent, _ = outfitted(inner, state, properties, None, to)
            original(exchange, routing_key, body, sent, mandatory)
            return
        # pika offers no public question for it; a channel may be in confirm mode already.
        confirmed = bool(channel._delivery_confirmation)  # noqa: SLF001
        write = state.name(exchange, routing_key, confirmed=confirmed)
        sent, write = outfitted(inner, state, properties, write, to)
        send(state, write, lambda: original(exchange, routing_key, body, sent, mandatory))

    return basic_publish


def send(state: State, write: Any, publish: Callable[[], None]) -> None:
    """Publish, and enter *write* as what became of it demands."""
    try:
        publish()
    except BaseException as error:
        if certainly_absent(error):
            state.refused(write)
        else:
            state.in_doubt(write)
        raise
    state.minted(write)


def certainly_absent(error: BaseException) -> bool:
    """Whether *error* of a publication proves that the broker has no message of it.

    Returned, never sent, or the channel closed because there is no such exchange. All else leaves
    it in doubt: an interrupt, and a nack, for another queue than the one that refused may have it.
    """
    exceptions = pika().exceptions
    if isinstance(error, exceptions.ChannelClosedByBroker):
        return getattr(error, "reply_code", None) in _REFUSALS
    return isinstance(
        error,
        (
            exceptions.UnroutableError,
            exceptions.ChannelWrongStateError,
            exceptions.ConnectionWrongStateError,
            exceptions.UnsupportedAMQPFieldException,
            exceptions.ShortStringTooLong,
            TypeError,
            ValueError,
            struct.error,
        ),
    )


def consuming(channel: Any, state: State) -> Callable[..., Any]:
    """A ``basic_consume`` whose callbacks run in the scope of their message."""
    original = channel.basic_consume

    @functools.wraps(original)
    def basic_consume(queue: str, on_message_callback: Any, *args: Any, **kwargs: Any) -> Any:
        if not callable(on_message_callback):
            return original(queue, on_message_callback, *args, **kwargs)

        @functools.wraps(on_message_callback)
        def in_scope(where: Any, method: Any, properties: Any, body: Any) -> Any:
            if not state.active:
                return on_message_callback(where, method, properties, body)
            to = method.exchange or method.routing_key
            with message_of(properties.headers, state.datastore, to):
                return on_message_callback(where, method, properties, body)

        return original(queue, in_scope, *args, **kwargs)

    return basic_consume


def transacting(channel: Any, state: State) -> Callable[..., Any]:
    """A ``tx_select`` that is noticed: nothing is known of what is published afterwards."""
    original = channel.tx_select

    @functools.wraps(original)
    def tx_select(*args: Any, **kwargs: Any) -> Any:
        state.transactional = True
        return original(*args, **kwargs)

    return tx_select
