"""What the library's own connections take over from a client, without a server."""

from __future__ import annotations

from typing import Any

import pytest
from pymongo import AsyncMongoClient, MongoClient

from antipode import ConfigurationError
from antipode.shim import Unreachable
from antipode_shims.mongodb._clients.pymongo import ServerSettings, _chosen


def settings(*args: Any, **options: Any) -> ServerSettings:
    """Those of a client that never connects."""
    client = MongoClient[Any](*args, **options, connect=False)
    with client:
        return ServerSettings.of(client)


def test_url() -> None:
    """Who the user is and how the link is secured is kept, what the application chose is not."""
    url = (
        "mongodb://user:p%40ss@one:1,two/app?replicaSet=rs&tls=true&compressors=zlib"
        "&readPreference=secondary&w=majority&maxPoolSize=7&retryWrites=false"
    )
    found = settings(url)
    assert found.seeds == (("one", 1), ("two", 27017))
    assert not found.direct
    assert found.arguments == {
        "username": "user",
        "password": "p@ss",
        "authsource": "app",
        "tls": True,
        "compressors": ["zlib"],
    }


def test_options_beside_a_url() -> None:
    """Arguments win over the URL, however they are spelled."""
    given = {"username": "u", "password": "p", "authSource": "admin"}
    found = settings("mongodb://one/app?authSource=x", **given)
    assert found.arguments == {"username": "u", "password": "p", "authsource": "admin"}
    # Without a user the database of a URL says nothing.
    assert settings("mongodb://one/app").arguments == {}


def test_plain_hosts() -> None:
    """Hosts and ports given apart."""
    assert settings().seeds == (("localhost", 27017),)
    found = settings("one", 1, directConnection=True)
    assert (found.seeds, found.direct) == ((("one", 1),), True)
    assert settings(["one:1", "two:2"]).seeds == (("one", 1), ("two", 2))
    asynchronous = AsyncMongoClient[Any]("one", 1, directConnection=True, connect=False)
    assert ServerSettings.of(asynchronous).where == found.where


def test_load_balancer() -> None:
    """Behind a load balancer there are mongos servers, which are refused."""
    with pytest.raises(ConfigurationError, match="sharded"):
        settings("mongodb://one/?loadBalanced=true")


def test_server_that_is_chosen() -> None:
    """The primary, or the only other member that holds data."""
    hello = {"hosts": ["one:1", "[::1]:2"], "primary": "one:1"}
    assert _chosen(hello, "primary") == ("one", 1)
    assert _chosen(hello, "replica") == ("::1", 2)
    with pytest.raises(ConfigurationError, match="directConnection"):
        _chosen({**hello, "passives": ["three:3"]}, "replica")
    with pytest.raises(Unreachable, match="no primary"):
        _chosen({"hosts": ["one:1"]}, "primary")
    with pytest.raises(Unreachable, match="no secondary"):
        _chosen({"hosts": ["one:1"], "primary": "one:1"}, "replica")
