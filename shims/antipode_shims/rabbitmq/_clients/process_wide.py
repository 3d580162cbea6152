"""``instrument``: every channel of this process, by the address of its connection."""

from __future__ import annotations

import functools
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from antipode.shim import ProcessWide, place_of, switchable
from antipode_shims.rabbitmq._instrument import implied, instrument_channel, uninstrument_channel

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode.shim import Datastores, Rule

_AMQPS = 5671
_AMQP = 5672


@switchable
def instrument(datastores: Datastores | None = None) -> None:
    """Instrument every channel that is opened from now on at an address that a rule names.

    Each as :func:`instrument_channel` does it with ``datastore``, and ``receipts`` where the rule
    has ``?receipts=true``: channels of pika and aio-pika. What a call for one channel says goes
    before the rules. Channels at other addresses stay as they are. Idempotent.

    Args:
        datastores: rules for this store, such as ``{"notifications": "amqp://broker:5672"}``,
            with ``/virtual-host`` where it is of one alone; they go before those of
            ``configure(datastores=...)`` and ``ANTIPODE_DATASTORES``. None: those alone.

    Raises:
        ConfigurationError: a rule is malformed, or two give one address two names.
    """
    _wide.start(datastores)


def uninstrument() -> None:
    """Undo :func:`instrument`; channels that were instrumented by a call stay so. Idempotent."""
    _wide.stop()
    for channel in list(implied):
        uninstrument_channel(channel)


def _opened(channel: Any, place: Callable[[Any], tuple[Any, Any, Any]], connection: Any) -> None:
    """A channel was opened."""
    host, port, virtual_host = place(connection)
    where = [place_of(host, int(port))]
    _wide.cover(channel, where, str(virtual_host or "/"), partial(_take, channel))


def _of_parameters(given: Any) -> tuple[Any, Any, Any]:
    return given.host, given.port, given.virtual_host


def _of_blocking(connection: Any) -> tuple[Any, Any, Any]:
    return _of_parameters(connection._impl.params)  # noqa: SLF001


def _of_callback(connection: Any) -> tuple[Any, Any, Any]:
    return _of_parameters(connection.params)


def _of_url(connection: Any) -> tuple[Any, Any, Any]:
    url = connection.url
    port = url.port or (_AMQPS if url.scheme == "amqps" else _AMQP)
    return url.host, port, url.path.removeprefix("/")


def _take(channel: Any, rule: Rule) -> None:
    instrument_channel(channel, datastore=rule.datastore, receipts=rule.receipts)
    implied.add(channel)


#: Within a call that opens a channel: what it opens beneath is not the application's.
_opening: ContextVar[bool] = ContextVar("antipode_opening", default=False)


def _of_pika(owner: Any, place: Callable[[Any], tuple[Any, Any, Any]]) -> None:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def channel(connection: Any, *args: Any, **options: Any) -> Any:
            beneath = _opening.get()
            token = _opening.set(True)
            try:
                found = original(connection, *args, **options)
            finally:
                _opening.reset(token)
            if not (beneath or getattr(connection, "_antipode_own", False)):
                _wide.quietly(_opened, found, place, connection)
            return found

        return channel

    _wide.replace(owner, "channel", make)


def _blocking(module: Any) -> None:
    _of_pika(module.BlockingConnection, _of_blocking)


def _callback(module: Any) -> None:
    _of_pika(module.Connection, _of_callback)


def _aio(module: Any) -> None:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def channel(connection: Any, *args: Any, **options: Any) -> Any:
            found = original(connection, *args, **options)
            if not getattr(connection, "_antipode_own", False):
                _wide.quietly(_opened, found, _of_url, connection)
            return found

        return channel

    _wide.replace(module.Connection, "channel", make)


_wide = ProcessWide(
    "rabbitmq",
    {
        "pika.adapters.blocking_connection": _blocking,
        "pika.connection": _callback,
        "aio_pika.connection": _aio,
    },
)
