"""Reads that an automatic barrier lets go though they may be stale, and their server refuses."""

from __future__ import annotations

import uuid
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import pymongo
import pytest

from antipode import ConfigurationError
from antipode.telemetry import Metric
from tests.agent.client import RemoteShim, StoreError
from tests.contract._servers import DATABASE, regions
from tests.integration._stale import doubtful
from tests.integration.redis._clients import client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode import Lineage
    from tests.agent.client import RemoteAntipode

STALE = Metric("served_stale", "posts")
LINEAGES = doubtful("posts")


def judge(store: str, topology: Any, remote: RemoteAntipode, **client: Any) -> None:
    """A read that is refused is not counted as served stale, the same read is once it is answered.

    Args:
        store: of which kind its servers are.
        topology: of its servers.
        remote: in whose process it reads.
        client: what else opens an instrumented client; nothing for Table 2.
    """
    key = uuid.uuid4().hex
    remote.configure(barriers="auto")
    with ExitStack() as stack:
        server, _ = stack.enter_context(regions(store, topology))
        shim = stack.enter_context(closing(RemoteShim(remote, store, "posts", server, **client)))
        shim.write(key, b"1")
        with refusing(store, topology, key):
            for lineage in LINEAGES:
                assert _read(remote, shim, key, lineage, refused=True) == 0
        shim.write(key, b"1")
        for lineage in LINEAGES:
            assert _read(remote, shim, key, lineage, refused=False) == 1


def _read(
    remote: RemoteAntipode, shim: RemoteShim, key: str, lineage: Lineage, *, refused: bool
) -> int:
    """By how much the count grew while it read."""
    before = remote.metrics().get(STALE, 0)
    with remote.scope(lineage):
        if refused:
            with pytest.raises((StoreError, ConfigurationError)):
                shim.read(key)
        else:
            assert shim.read(key)[0] == b"1"
    return remote.metrics().get(STALE, 0) - before


@contextmanager
def refusing(store: str, topology: Any, key: str) -> Iterator[None]:
    """Let the primary refuse to read *key*."""
    if store == "redis":
        with client(topology.primary) as plain:
            plain.delete(key)
            plain.rpush(key, "a list")
            yield
            plain.delete(key)
    elif store == "mongodb":
        place = topology.primary
        url = f"mongodb://{place.host}:{place.port}/?directConnection=true"
        with pymongo.MongoClient[dict[str, Any]](url) as plain:
            database = plain[DATABASE]
            database.drop_collection("posts")
            database.command("create", "posts", viewOn="refused", pipeline=[_REFUSED])
            database.refused.insert_one({"_id": key})
            yield
            database.drop_collection("posts")
            database.drop_collection("refused")
    else:
        topology.execute("RENAME TABLE app.antipode_kv TO app.antipode_kept")
        yield
        topology.execute("RENAME TABLE app.antipode_kept TO app.antipode_kv")


#: What a view shows of each document.
_REFUSED = {"$project": {"value": {"$divide": [1, 0]}}}
