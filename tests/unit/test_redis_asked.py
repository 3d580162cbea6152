"""What is known of ``INFO`` on a connection that may be connected anew."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from antipode import ConfigurationError
from antipode_shims.redis._clients.asked import Asked
from antipode_shims.redis._clients.redis_py import link_of

CLOSED = redis.ConnectionError("Connection closed by server.")


def connected() -> Any:
    """A connection that would be connected if there were a server."""
    connection = redis.connection.Connection()
    connection._sock = object()
    return connection


def test_a_connection_is_asked_until_it_answers() -> None:
    """Not before it is connected, and not again once it has answered."""
    connection = redis.connection.Connection()
    asked = Asked.of(connection)
    assert not asked.settled(connection)
    connection._sock = object()
    assert not asked.settled(connection)
    asked.answered(connection, b"role:master")
    assert Asked.of(connection).settled(connection)
    assert asked.refusal is None


def test_a_connection_that_is_connected_anew_is_asked_anew() -> None:
    """Whatever was learned is of one link: the server may be another one."""
    connection = connected()
    asked = Asked.of(connection)
    asked.answered(connection, redis.exceptions.NoPermissionError("no permissions"))
    assert str(asked.refusal) == "no permissions"
    connection._sock = object()
    assert not asked.settled(connection)


def test_closed_twice_is_no_accident() -> None:
    """Once it is asked again; twice, and the next link is not asked any more."""
    connection = connected()
    asked = Asked.of(connection)
    assert asked.failed(CLOSED)
    connection._sock = object()
    assert not asked.settled(connection)
    assert asked.failed(CLOSED)
    connection._sock = None
    assert not asked.settled(connection)
    connection._sock = object()
    assert asked.settled(connection)
    assert isinstance(asked.refusal, ConfigurationError)


@pytest.mark.parametrize(
    "error",
    [
        redis.TimeoutError("Timeout reading from socket"),
        redis.exceptions.AuthenticationError("Authentication required."),
        redis.exceptions.BusyLoadingError("Redis is loading the dataset in memory"),
    ],
)
def test_other_failures_prove_nothing(error: Exception) -> None:
    """They are the client's to deal with."""
    assert not Asked.of(connected()).failed(error)


@pytest.mark.parametrize("reply", ["BUSY Redis is busy running a script.", "LOADING ..."])
def test_what_passes_by_itself_is_no_refusal(reply: str) -> None:
    """A server that is busy does get the question."""
    connection = connected()
    asked = Asked.of(connection)
    asked.answered(connection, redis.ResponseError(reply))
    assert asked.settled(connection)
    assert asked.refusal is None


def test_a_connection_of_unknown_kind_is_its_own_link() -> None:
    """Without redis-py's own classes below it, it is asked once for good."""

    class Own:
        pass

    own = Own()
    assert link_of(own) is own
    Asked.of(own).answered(own, b"role:master")
    assert Asked.of(own).settled(own)
