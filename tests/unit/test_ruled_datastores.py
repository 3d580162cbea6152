"""Datastores that a rule names and whose clients are not made yet: what barriers do about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage, Promise, Status, WriteId
from antipode._runtime import ruled
from antipode.shim import floor, register
from tests.unit._fake_server import FakeServer

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOP, LEDGER = WriteId("shop", "log", 7), WriteId("ledger", "log", 1)
LINEAGE = Lineage([SHOP])
RULES = "shop=postgresql://db, shop=postgresql://standby?reads_from=replica, jobs=amqp://broker"


@pytest.fixture
def ruled_stores() -> Iterator[None]:
    """Rules for PostgreSQL and RabbitMQ are in force."""
    antipode.configure(datastores=RULES)
    for store in ("postgresql", "rabbitmq"):
        ruled.follow(store)
    yield
    for store in ("postgresql", "rabbitmq"):
        ruled.unfollow(store)


def made(*, position: int = 0) -> FakeServer:
    """The client of the datastore, which is made now."""
    server = FakeServer("shop", position=position)
    server.floors = True
    register(server)
    return server


def counted(name: str, datastore: str = "shop") -> int:
    return antipode.telemetry.metrics().get(antipode.telemetry.Metric(name, datastore), 0)


@pytest.mark.usefixtures("ruled_stores")
@pytest.mark.parametrize("only", [None, "shop"])
def test_what_cannot_be_waited_for_now_is_left_to_the_reads(only: str | None) -> None:
    """The outcome says why, the count is one of its own, and the first read has a floor."""
    before, strangers = counted("client_not_made"), counted("unknown_store")
    with antipode.scope(LINEAGE):
        (outcome,) = antipode.barrier(timeout=1, only=only).outcomes
        assert (outcome.status, outcome.reported) == (Status.UNKNOWN_STORE, True)
        assert "its client is not made yet" in outcome.cause
        held = floor(made())
        assert held is not None
        assert held.writes == {SHOP}
    assert counted("client_not_made") == before + 1
    assert counted("unknown_store") == strangers


@pytest.mark.usefixtures("ruled_stores")
def test_at_the_read_it_is_deferred() -> None:
    """Nothing is unknown then: the read that follows has the floor, a promise in it as well."""
    promise = Promise("shop", "a1" * 16, 2_000_000_000)
    with antipode.scope(Lineage([SHOP], promises=[promise])):
        outcomes = antipode.barrier(timeout=1, at="read", only="shop").outcomes
        assert {each.status for each in outcomes} == {Status.DEFERRED}
        held = floor(made())
        assert held is not None
        assert (held.writes, held.promises) == ({SHOP}, {promise})


@pytest.mark.usefixtures("ruled_stores")
def test_who_asked_for_errors_has_one() -> None:
    """``on_unknown="raise"`` raises at ``now``: the barrier may guard what is no read."""
    with antipode.scope(LINEAGE):
        with pytest.raises(antipode.UnknownDatastore, match="not made yet"):
            antipode.barrier(timeout=1, on_unknown="raise")
        assert floor(made()) is None


@pytest.mark.usefixtures("ruled_stores")
def test_another_teams_datastore_stays_a_stranger() -> None:
    """It passes in a process whose own clients are all still to be made, and who names it errs."""
    with antipode.scope(Lineage([SHOP, LEDGER])):
        outcomes = {each.write: each.cause for each in antipode.barrier(timeout=1).outcomes}
        assert outcomes[LEDGER] == "this process has no shim for it"
        with pytest.raises(antipode.UnknownDatastore):
            antipode.barrier(timeout=1, only=["ledger"])


@pytest.mark.usefixtures("ruled_stores")
def test_messages_without_receipts_are_not_waited_for() -> None:
    """As where their client is there: nothing can be waited for, and nothing is missing."""
    (outcome,) = antipode.barrier(Lineage([WriteId("jobs", "x", 1)]), timeout=1).outcomes
    assert outcome.status is Status.NOT_WAITABLE


@pytest.fixture
def later_stores() -> Iterator[None]:
    """Rules for messages with receipts and for S3 are in force."""
    antipode.configure(datastores="mail=amqp://broker?receipts=true, media=s3://eu-west-1")
    for store in ("rabbitmq", "s3"):
        ruled.follow(store)
    yield
    for store in ("rabbitmq", "s3"):
        ruled.unfollow(store)


@pytest.mark.usefixtures("later_stores")
def test_messages_with_receipts_whose_client_is_not_made() -> None:
    """It is reported with its cause, and who asked for them by name has an error."""
    before, strangers = counted("client_not_made", "mail"), counted("unknown_store", "mail")
    lineage = Lineage([WriteId("mail", "x", 1)])
    (outcome,) = antipode.barrier(lineage, timeout=1).outcomes
    assert (outcome.status, outcome.reported) == (Status.UNKNOWN_STORE, True)
    assert "its client is not made yet" in outcome.cause
    assert counted("client_not_made", "mail") == before + 1
    assert counted("unknown_store", "mail") == strangers
    with pytest.raises(antipode.UnknownDatastore, match="make it at start"):
        antipode.barrier(lineage, timeout=1, only="mail")


@pytest.mark.usefixtures("later_stores")
@pytest.mark.parametrize("at", ["now", "read"])
def test_s3_has_a_floor_and_no_promises(at: antipode._barrier.plan.At) -> None:
    """Its writes are left to the reads that follow; nobody there can be asked for a promise."""
    write, promise = (
        WriteId("media", "bucket/key", "v1"),
        Promise("media", "a1" * 16, 2_000_000_000),
    )
    with antipode.scope(Lineage([write])):
        assert antipode.barrier(timeout=1, at=at)
        client = FakeServer("media")
        client.floors = True
        register(client)
        held = floor(client)
        assert held is not None
        assert (held.writes, held.promises) == ({write}, frozenset())
        client.close()
    lineage, why = Lineage([write], promises=[promise]), "cannot ask for promises"
    with antipode.scope(lineage), pytest.raises(antipode.VisibilityCheckError, match=why):
        antipode.barrier(timeout=1, at=at)


def test_rules_that_nothing_applies_make_nothing_known() -> None:
    """The cause says what is missing, and a barrier for it raises."""
    antipode.configure(datastores=RULES)
    with pytest.raises(antipode.UnknownDatastore, match=r"call antipode\.setup\(\)"):
        antipode.barrier(LINEAGE, timeout=1, only="shop")


@pytest.mark.usefixtures("ruled_stores")
@pytest.mark.parametrize("at", ["now", "read"])
def test_a_floor_that_no_read_met_is_told(
    at: antipode._barrier.plan.At, caplog: pytest.LogCaptureFixture
) -> None:
    """It is counted when its request ends, and its datastore is logged once."""
    before = counted("floor_unused")
    for _ in range(2):
        with antipode.scope(LINEAGE):
            antipode.barrier(timeout=1, at=at)
    assert counted("floor_unused") == before + 2
    assert len([each for each in caplog.records if "read there" in each.getMessage()]) <= 1


@pytest.mark.usefixtures("ruled_stores")
def test_a_floor_that_a_read_met_is_not(caplog: pytest.LogCaptureFixture) -> None:
    """The read asked for it, whatever it was shown."""
    before = counted("floor_unused")
    with antipode.scope(LINEAGE):
        antipode.barrier(timeout=1)
        server = made(position=9)
        assert floor(server) is not None
    assert counted("floor_unused") == before
    assert not caplog.records or "read there" not in caplog.text


@pytest.mark.usefixtures("ruled_stores")
def test_automatic_barriers_know_it() -> None:
    """A read of another datastore says nothing of it, with ``on_unknown="raise"`` neither."""
    antipode.configure(barriers="auto", on_unknown="raise", on_stale="raise")
    other = FakeServer("posts", position=9)
    other.floors = True
    register(other)
    before = counted("unknown_store")
    with antipode.scope(LINEAGE):
        assert floor(other) is None
    assert counted("unknown_store") == before
