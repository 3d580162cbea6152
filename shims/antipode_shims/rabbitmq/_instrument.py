"""``instrument_channel``: one entry for the channels of all clients."""

from __future__ import annotations

import weakref
from typing import Any, TypeVar

from antipode import ConfigurationError
from antipode.shim import named_client, register, shims_of, switchable
from antipode_shims._messages.publisher import Publications, SequenceBy

from ._clients import aio_pika as _aio
from ._clients import pika_blocking as _blocking
from ._clients import pika_callback as _callback
from ._clients.channel_state import State, state_of
from ._clients.libraries import kind
from ._shim.shim import UnwaitableShim

_Channel = TypeVar("_Channel")
_INSTRUMENT = {
    "blocking": _blocking.instrument,
    "callback": _callback.instrument,
    "aio": _aio.instrument,
}


#: Channels that are instrumented because of their address: a call for one of them is new.
implied: weakref.WeakSet[Any] = weakref.WeakSet()


@switchable
def instrument_channel(
    channel: _Channel,
    *,
    datastore: str,
    receipts: bool = False,
    exchange: str | None = None,
    sequence_by: SequenceBy = "exchange",
) -> _Channel:
    """Make a channel carry lineages: in the headers it publishes, in the callbacks it consumes.

    A publication enters the current scope when the broker confirmed it: the channel must be in
    confirm mode, which aio-pika's are by default. Idempotent.

    Args:
        channel: a pika ``BlockingChannel`` or ``Channel`` (before its ``confirm_delivery()``),
            an aio-pika channel, or an aio-pika exchange, which stands for its channel.
        datastore: the name that every service gives to this exchange or broker.
        receipts: readers of *datastore* have receipts, so that unconfirmed publications enter
            too. Implied where this process has them.
        exchange: the exchange that receipts of *datastore* listen to; empty for queues whose
            readers have ``Receipts(tap=False)``. What is published to another one carries the
            lineage and enters none. None: that of the receipts in this process; without them
            every exchange but the default one, of which no tap hears.
        sequence_by: what readers' receipts listen to: whole exchanges, or single routing keys.

    Returns:
        The same object.

    Raises:
        ConfigurationError: the object is no channel, is instrumented for another datastore, or
            is in confirm mode already and of callbacks.
    """
    if not datastore:
        msg = "datastore must be a non-empty name that every service spells alike"
        raise ConfigurationError(msg)
    what = kind(channel)
    target: Any = channel.channel if what == "exchange" else channel  # type: ignore[attr-defined]
    if target in implied:
        uninstrument_channel(target)
    held = state_of(target)
    if held is not None:
        if held.datastore != datastore:
            msg = f"the channel is instrumented as {held.datastore!r}, not {datastore!r}"
            raise ConfigurationError(msg)
    else:
        state = State(Publications(datastore, sequence_by), receipts=receipts, exchange=exchange)
        _INSTRUMENT["aio" if what == "exchange" else what](target, state)
        state.attach(target)
        named_client(target)
    if not shims_of(datastore):
        register(UnwaitableShim(datastore))
    return channel


def uninstrument_channel(channel: _Channel) -> _Channel:
    """Undo :func:`instrument_channel`. Idempotent; returns the same object.

    Callbacks that consume already go on, without scopes.

    Raises:
        ConfigurationError: the object is no channel.
    """
    what = kind(channel)
    target: Any = channel.channel if what == "exchange" else channel  # type: ignore[attr-defined]
    implied.discard(target)
    held = state_of(target)
    if held is not None:
        held.detach(target)
    return channel
