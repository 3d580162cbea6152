"""What tests of promises on MongoDB share: branches, and readers of one member."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import antipode
from antipode import Lineage, Promise, Status
from antipode_shims import mongodb
from antipode_testing import wait_until

from ._clients import DB, client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode.shim import Outcome

STORE = "posts"
WRITER: dict[str, Any] = {"promise_database": DB}
READER: dict[str, Any] = {"promise_database": DB, "reads_from": "replica"}
SECONDARY: dict[str, Any] = {"readPreference": "secondary"}


def promised(seconds: float = 60) -> Promise:
    """A promise of its own request."""
    with antipode.scope():
        return antipode.promise(STORE, expires_in_s=seconds)


def refund(writer: Any, promise: Promise) -> None:
    """What the branch does: data and record in one transaction."""
    with antipode.scope(), writer.start_session() as session, session.start_transaction():
        writer[DB].refunds.insert_one({"_id": promise.id}, session=session)
        mongodb.fulfil(writer[DB], promise, session=session)


def refunded(reader: Any, promise: Promise, **options: Any) -> bool:
    """Whether a reader finds the data."""
    return reader[DB].refunds.find_one({"_id": promise.id}, **options) is not None


def outcome(promise: Promise, *, timeout: float = 10.0) -> Outcome:
    """What a barrier on it comes to."""
    lineage = Lineage(promises=[promise])
    return antipode.barrier(lineage, timeout=timeout, on_unmet="return").outcomes[0]


def is_open(promise: Promise) -> bool:
    """Whether a look shows no record of it, however long the first one takes."""
    found: list[Outcome] = []

    def looked() -> bool:
        found[:] = antipode.check(Lineage(promises=[promise])).outcomes
        return bool(found[0].server)

    wait_until(looked, what="a look", timeout_s=20)
    return found[0].status is Status.NOT_YET


@contextmanager
def floor(*promises: Promise, timeout: float = 10.0) -> Iterator[None]:
    """A block whose reads wait for *promises*, on whatever connection they are made."""
    with antipode.scope(Lineage(promises=promises)):
        antipode.barrier(timeout=timeout, at="read")
        yield


@contextmanager
def regions(topology: Any) -> Iterator[tuple[Any, Any]]:
    """A client of the primary and one of the replica, with the collections there."""
    with client(topology.primary, WRITER) as writer:
        for command in mongodb.promises_ddl():
            writer[DB].command(command)
        writer[DB].refunds.insert_one({})
        topology.wait_replicated()
        with client(topology.replica, READER, **SECONDARY) as reader:
            yield writer, reader
