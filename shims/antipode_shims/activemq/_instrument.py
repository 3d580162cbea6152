"""``instrument_connection``: existing code keeps its connection and its calls."""

from __future__ import annotations

import weakref
from typing import Any, TypeVar

from antipode import ConfigurationError
from antipode.shim import register, shims_of, switchable

from ._clients.connection import ATTRIBUTE, Followed
from ._clients.stomp import stomp
from ._shim import UnwaitableShim

ConnectionT = TypeVar("ConnectionT")

#: Connections that are instrumented because of their address: a call for one of them is new.
implied: weakref.WeakSet[Any] = weakref.WeakSet()


@switchable
def instrument_connection(
    connection: ConnectionT, *, datastore: str, receipts: bool = False
) -> ConnectionT:
    """Let what *connection* sends carry the current lineage, and be recorded.

    A message to a topic enters the lineage of its request: with a ``receipt`` when that comes,
    in a transaction when it is committed, else as it is sent, where readers have receipts. Handle
    each message that is consumed within :func:`message`.

    Args:
        connection: a ``Connection``, ``Connection11`` or ``Connection12`` of stomp.py.
        datastore: the name that every service spells alike.
        receipts: whether readers elsewhere have receipts, so that unconfirmed messages count.

    Returns:
        The same object. Instrumenting it again changes nothing.

    Raises:
        ConfigurationError: no connection of stomp.py, or another datastore than before.
    """
    if not isinstance(connection, stomp().connect.BaseConnection):
        msg = f"expected a connection of stomp.py, not {type(connection).__name__}"
        raise ConfigurationError(msg)
    if connection in implied:
        uninstrument_connection(connection)
    held = vars(connection).get(ATTRIBUTE)
    if held is not None:
        if held.datastore != datastore:
            msg = f"this connection is instrumented as {held.datastore!r} already"
            raise ConfigurationError(msg)
        return connection
    if not shims_of(datastore):
        register(UnwaitableShim(datastore))
    Followed(connection, datastore, receipts=receipts).attach()
    return connection


def uninstrument_connection(connection: Any) -> None:
    """Undo :func:`instrument_connection`. One that is not instrumented stays as it is."""
    implied.discard(connection)
    held = vars(connection).get(ATTRIBUTE)
    if held is not None:
        held.detach()
