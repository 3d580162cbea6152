"""The client libraries, imported when they are first needed."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from antipode import ConfigurationError

_INSTALL = 'pip install "antipode-xcy[rabbitmq]"'


def pika() -> Any:
    """The module ``pika``.

    Raises:
        ConfigurationError: it is not installed; the message says what to run.
    """
    if (found := sys.modules.get("pika")) is not None:
        return found  # As for each message.
    try:
        return import_module("pika")
    except ModuleNotFoundError as error:
        msg = f"the rabbitmq shim needs pika: {_INSTALL}"
        raise ConfigurationError(msg) from error


def kind(channel: object) -> str:
    """Which client *channel* belongs to: ``blocking``, ``callback``, ``aio`` or ``exchange``.

    Imports nothing: a channel of a client can only exist where that client was imported.

    Raises:
        ConfigurationError: of none that this shim covers.
    """
    for name, module, classes in (
        ("blocking", "pika.adapters.blocking_connection", ("BlockingChannel",)),
        ("callback", "pika.channel", ("Channel",)),
        ("aio", "aio_pika.abc", ("AbstractChannel",)),
        ("exchange", "aio_pika.abc", ("AbstractExchange",)),
    ):
        loaded = sys.modules.get(module)
        if loaded is not None and isinstance(
            channel, tuple(getattr(loaded, each) for each in classes)
        ):
            return name
    msg = (
        f"cannot instrument a {type(channel).__name__}: pass a channel of pika (BlockingChannel "
        f"or Channel) or of aio-pika; for the clients themselves: {_INSTALL}"
    )
    raise ConfigurationError(msg)
