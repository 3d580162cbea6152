"""Connections of the library's own."""

from __future__ import annotations

import copy
from typing import Any

from antipode import ConfigurationError
from antipode.shim import Unreachable, own_client
from antipode_shims.rabbitmq._clients.libraries import pika

#: Seconds for each step of a connection: a broker that does not answer is noticed after it.
CONNECT_S = 5.0


def parameters_of(connection: Any, *, name: str, heartbeat_s: int | None = None) -> Any:
    """Connection parameters of pika from a URL or from parameters, which are not touched.

    Raises:
        ConfigurationError: it is neither, or the URL is malformed.
    """
    client = pika()
    if isinstance(connection, str):
        try:
            connection = client.URLParameters(connection)
        except (ValueError, TypeError) as error:
            # The URL itself may hold a password: it is not repeated.
            msg = f"the broker's URL is malformed ({type(error).__name__}): amqp://user@host/vhost"
            raise ConfigurationError(msg) from None
    if not isinstance(connection, client.connection.Parameters):
        msg = f"pass a URL or pika parameters of the broker, not a {type(connection).__name__}"
        raise ConfigurationError(msg)
    parameters = copy.copy(connection)
    parameters.connection_attempts = 1
    parameters.socket_timeout = CONNECT_S
    parameters.stack_timeout = CONNECT_S
    parameters.client_properties = {
        **(parameters.client_properties or {}),
        "connection_name": name,
    }
    if heartbeat_s is not None:
        parameters.heartbeat = heartbeat_s
    return parameters


def connect(parameters: Any) -> Any:
    """A BlockingConnection.

    Raises:
        Unreachable: no connection now.
        ConfigurationError: the broker refuses these credentials or this virtual host.
    """
    exceptions = pika().exceptions
    try:
        return own_client(lambda: pika().BlockingConnection(parameters))
    except (
        exceptions.ProbableAuthenticationError,
        exceptions.AuthenticationError,
        exceptions.ProbableAccessDeniedError,
    ) as error:
        msg = f"the broker at {_place(parameters)} refuses the user or the virtual host: {error!r}"
        raise ConfigurationError(msg) from None
    except (exceptions.AMQPError, OSError) as error:
        raise Unreachable(f"no broker at {_place(parameters)}: {describe(error)}") from error


def describe(error: BaseException) -> str:
    """An error of pika in a line: many have no text, or wrap another."""
    inner = error.args[0] if error.args and isinstance(error.args[0], BaseException) else None
    if inner is not None and not isinstance(inner, pika().exceptions.AMQPError):
        return f"{type(error).__name__}: {inner!r}"
    return str(error) or repr(error)


def close_quietly(connection: Any) -> None:
    """Close *connection*, whatever state it is in."""
    try:
        if connection.is_open:
            connection.close()
    except (pika().exceptions.AMQPError, OSError):
        pass  # It is gone already.


def _place(parameters: Any) -> str:
    return f"{parameters.host}:{parameters.port}"
