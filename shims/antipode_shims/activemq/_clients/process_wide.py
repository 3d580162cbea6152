"""``instrument``: every connection of this process, by the addresses that it is given."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from antipode.shim import ProcessWide, place_of, switchable
from antipode_shims.activemq._instrument import (
    implied,
    instrument_connection,
    uninstrument_connection,
)

if TYPE_CHECKING:
    from antipode.shim import Datastores, Rule


@switchable
def instrument(datastores: Datastores | None = None) -> None:
    """Instrument every connection of stomp.py whose address a rule names, made before or later.

    Each as :func:`instrument_connection` does it with ``datastore``, and ``receipts`` where the
    rule has ``?receipts=true``. What a call for one connection says goes before the rules.
    Connections to other addresses stay as they are. Idempotent.

    Args:
        datastores: rules for this store, such as ``{"news": "stomp://broker:61613"}``; they go
            before those of ``configure(datastores=...)`` and ``ANTIPODE_DATASTORES``. None: those
            alone.

    Raises:
        ConfigurationError: a rule is malformed, or two give one address two names.
    """
    _wide.start(datastores)


def uninstrument() -> None:
    """Undo :func:`instrument`; what was instrumented by a call stays so. Idempotent."""
    _wide.stop()
    for connection in list(implied):
        uninstrument_connection(connection)


def _made(connection: Any) -> None:
    """A connection is being made: it has its transport by then, and not connected yet."""
    hosts = connection.transport._Transport__host_and_ports  # noqa: SLF001 - nothing else has them
    where = [place_of(host, int(port)) for host, port, *_ in hosts]
    _wide.cover(connection, where, None, partial(_take, connection))


def _take(connection: Any, rule: Rule) -> None:
    instrument_connection(connection, datastore=rule.datastore, receipts=rule.receipts)
    implied.add(connection)


def _of_stomp(module: Any) -> None:
    _wide.after(module.BaseConnection, "__init__", _made)


_wide = ProcessWide("activemq", {"stomp.connect": _of_stomp})
