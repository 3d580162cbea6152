"""Instrumented ``pika`` Channel, the one of callbacks: confirms come later, and are matched."""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antipode import ConfigurationError
from antipode.shim import scope_in
from antipode_shims._messages.headers import own_write
from antipode_shims._messages.unconfirmed import Unconfirmed

from .libraries import pika
from .pika_blocking import certainly_absent, consuming, outfitted, transacting

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode import WriteId

    from .channel_state import State


@dataclass(slots=True)
class _Pending:
    """A publication that the broker has not confirmed."""

    message: Unconfirmed
    returned: bool = False


@dataclass(slots=True)
class Confirms:
    """The publications of one channel in confirm mode, by delivery tag.

    Attributes:
        tag: the tag of the last publication; None while tags cannot be counted.
    """

    state: State
    tag: int | None = None
    pending: dict[int, _Pending] = field(default_factory=dict)

    def sent(self, write: WriteId | None) -> None:
        """The next publication was sent; None: one of which no more is asked."""
        if self.tag is not None:
            self.tag += 1
            if write is not None:
                message = Unconfirmed(scope_in(), write, awaits=_from_elsewhere())
                self.pending[self.tag] = _Pending(message)
                message.sent()

    def returned(self, write: WriteId | None) -> None:
        """The broker routed *write* nowhere; it will acknowledge it all the same."""
        for pending in self.pending.values():
            if pending.message.write == write:
                pending.returned = True

    def settle(self, tag: int, *, multiple: bool, accepted: bool) -> None:
        """The broker took or refused a publication, or all up to it."""
        tags = [t for t in self.pending if t <= tag] if multiple else [tag]
        for each in tags:
            pending = self.pending.pop(each, None)
            if pending is None:
                continue
            if pending.returned:
                pending.message.refuse()
                self.state.refused(pending.message.write)
            elif accepted:
                pending.message.confirm()
            else:
                self._doubt(pending)

    def closed(self) -> None:
        """The channel is gone: what was not confirmed is in doubt."""
        pending, self.pending = self.pending, {}
        self.tag = None
        for each in pending.values():
            self._doubt(each)

    def _doubt(self, pending: _Pending) -> None:
        """The broker may have it, in some queues."""
        self.state.publications.void(pending.message.write)
        pending.message.doubt()


def _from_elsewhere() -> Callable[[], bool]:
    """Whether who asks is in another thread than this one, which has to take confirms in."""
    here = threading.get_ident()
    return lambda: threading.get_ident() != here


def instrument(channel: Any, state: State) -> None:
    """Replace what *channel* publishes, consumes and asks for confirms with.

    Raises:
        ConfigurationError: it is in confirm mode already: its confirms cannot be counted.
    """
    ack = pika().spec.Basic.Ack
    if channel.callbacks.pending(channel.channel_number, ack):
        msg = "instrument the channel before its confirm_delivery(): confirms are counted from it"
        raise ConfigurationError(msg)
    confirms = Confirms(state)
    state.replace(channel, "basic_publish", _publishing(channel, state, confirms))
    state.replace(channel, "confirm_delivery", _confirming(channel, confirms))
    state.replace(channel, "basic_consume", consuming(channel, state))
    state.replace(channel, "tx_select", transacting(channel, state))


def _publishing(channel: Any, state: State, confirms: Confirms) -> Callable[..., None]:
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
        confirmed, to = confirms.tag is not None, exchange or routing_key
        if not state.hears(exchange):
            sent, _ = outfitted(channel, state, properties, None, to)
            original(exchange, routing_key, body, sent, mandatory)
            confirms.sent(None)
            return
        write = state.name(exchange, routing_key, confirmed=confirmed)
        sent, write = outfitted(channel, state, properties, write, to)
        try:
            original(exchange, routing_key, body, sent, mandatory)
        except BaseException as error:
            if certainly_absent(error):
                state.refused(write)
            else:
                state.in_doubt(write)
            raise
        if write is None:
            confirms.sent(None)
            return
        if not confirmed:
            state.minted(write)
            return
        confirms.sent(write)

    return basic_publish


def _confirming(channel: Any, confirms: Confirms) -> Callable[..., None]:
    original = channel.confirm_delivery

    @functools.wraps(original)
    def confirm_delivery(ack_nack_callback: Any, callback: Any = None) -> None:
        # After another request in progress pika sends this one later, and from when the broker
        # counts cannot be known: such a channel publishes unconfirmed as far as we know.
        countable = channel._blocking is None  # noqa: SLF001
        original(ack_nack_callback, callback)
        if countable and confirms.tag is None:
            confirms.tag = 0
            _listen(channel, confirms)

    return confirm_delivery


def _listen(channel: Any, confirms: Confirms) -> None:
    basic = pika().spec.Basic

    def settled(frame: Any) -> None:
        method = frame.method
        accepted = isinstance(method, basic.Ack)
        confirms.settle(method.delivery_tag, multiple=method.multiple, accepted=accepted)

    def returned(_channel: Any, _method: Any, properties: Any, _body: Any) -> None:
        try:
            confirms.returned(own_write(properties.headers))
        except ValueError:
            return  # Not one of ours.

    number = channel.channel_number
    channel.callbacks.add(number, basic.Ack, settled, False)  # noqa: FBT003 - pika's signature
    channel.callbacks.add(number, basic.Nack, settled, False)  # noqa: FBT003
    channel.add_on_return_callback(returned)
    channel.add_on_close_callback(lambda *_: confirms.closed())
