"""What lineages cost in the stores: bytes beside a value, and what repeated updates add to them."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, UnmetError, WriteId
from antipode.shim import SYSTEM_CLOCK
from tests.end_to_end._xcy_stores import KEEPERS, TIMEOUT_S, opened, over

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES = 100
#: Bytes of a second position of the same log.
SECOND_BYTES = 50
UPDATES = 1000
#: Updates after which a value has whatever repeated ones of the same few logs add to it.
WARM = 40
#: Bytes that longer numbers may take.
SLACK = 16
#: Bytes of a value whose updates had a log each: each store has a bound of its own.
BOUND = 32_768
PARTIAL = over("mysql", "mariadb", "mongodb")


@pytest.fixture
def key() -> str:
    return f"size-{uuid.uuid4().hex}"


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[Any]:
    with opened(request, {"post-storage": request.param[0]}) as (made,):
        yield made


@pytest.fixture
def lists(request: pytest.FixtureRequest) -> Iterator[list[Any]]:
    with opened(request, dict(zip(("lists", "notes"), request.param, strict=True))) as made:
        yield made


@pytest.fixture
def lineages(request: pytest.FixtureRequest) -> Iterator[dict[str, tuple[Lineage, Lineage]]]:
    """Lineages of one store each, by its name: of a write, and of a read."""
    found = {}
    with opened(request, {f"posts-in-{kind}": kind for kind in KEEPERS}) as stores:
        for each in stores:
            key = uuid.uuid4().hex
            with antipode.scope():
                written = each.put(key, b"1", Lineage())
            with antipode.scope():
                found[each.name] = written, each.get_at_home(key)[1]
        yield found


def bytes_of(store: Any, key: str, lineage: Lineage) -> int:
    with antipode.scope():
        store.put(key, uuid.uuid4().bytes, lineage)
    return int(store.beside(key))


@pytest.mark.parametrize("store", over(*KEEPERS), indirect=True)
def test_one_store_costs_less_than_a_hundred_bytes(
    store: Any, key: str, lineages: dict[str, tuple[Lineage, Lineage]]
) -> None:
    """Whatever store a write or a read was in, at most a hundred bytes lie beside the value."""
    sizes = [
        (bytes_of(store, key, lineage), lineage) for both in lineages.values() for lineage in both
    ]
    assert all(0 < size <= MOST_BYTES for size, _ in sizes), sizes


@pytest.mark.parametrize("store", over(*KEEPERS), indirect=True)
def test_write_and_later_read_cost_little_more(
    store: Any, key: str, lineages: dict[str, tuple[Lineage, Lineage]]
) -> None:
    """Who wrote, and then read what others wrote after that, keeps a position of either kind."""
    for written, _ in lineages.values():
        (write,) = written
        later = replace(write, version=int(write.version) + 1, covering=True)
        both = written.append(later)
        assert len(both) == len(written) + 1
        assert bytes_of(store, key, both) <= bytes_of(store, key, written) + SECOND_BYTES


def updated(store: Any, key: str, number: int, *writes: WriteId) -> None:
    with antipode.scope():
        store.change(key, "a", number, Lineage(writes))


def write(log: str, version: int, hour: int | None = None) -> WriteId:
    return WriteId("elsewhere", log, version, SYSTEM_CLOCK.hour() if hour is None else hour)


@pytest.mark.slow
@pytest.mark.parametrize("store", PARTIAL, indirect=True)
def test_updates_of_few_logs_cost_no_more_than_one(store: Any, key: str) -> None:
    """A thousand updates whose causes lie in two moving logs leave their last positions alone."""
    for number in range(1, UPDATES + 1):
        updated(store, key, number, write(f"log-{number % 2}", number))
        if number == WARM:
            before = store.beside(key)
    assert store.beside(key) <= before + SLACK
    with antipode.scope():
        found = store.get_at_home(key)[1]
    assert not found.incomplete
    assert {write("log-0", UPDATES), write("log-1", UPDATES - 1)} <= set(found)


@pytest.mark.slow
@pytest.mark.parametrize("store", PARTIAL, indirect=True)
def test_updates_of_many_logs_are_bounded(store: Any, key: str) -> None:
    """A thousand updates with a cause in a log each stay bounded, and say that some are missing.

    Which ones of an hour stay is no claim, for it is a matter of their texts; a later hour stays.
    """
    now = SYSTEM_CLOCK.hour()
    newest = write(f"log-{UPDATES}", UPDATES, now)
    most = 0
    for number in range(1, UPDATES):
        updated(store, key, number, write(f"log-{number}", number, now - 1))
        if number % WARM == 0:
            most = max(most, store.beside(key))
    updated(store, key, UPDATES, newest)
    assert max(most, store.beside(key)) <= BOUND
    with antipode.scope():
        found = store.get_at_home(key)[1]
    kept = sum(each.datastore == "elsewhere" for each in found)
    assert kept < UPDATES
    assert {mark.reason for mark in found.incomplete} == {"size"}
    assert newest in found


@pytest.mark.parametrize(
    "lists",
    over(("mysql", "redis"), ("mariadb", "mongodb"), ("mongodb", "mysql")),
    indirect=True,
)
def test_dropped_parts_let_nothing_pass(lists: list[Any], key: str) -> None:
    """What was dropped for size may be of any store: a barrier does not pass by it."""
    store, notes = lists
    notes.topology.pause()
    with antipode.scope():
        notes.put(key, b"cause")
        needed = antipode.current()
    opaque = [WriteId("objects", f"object-{number}", "opaque" * 4, 1) for number in range(60)]
    for number, other in enumerate(opaque):
        causes = (*needed, other) if number == 0 else (other,)
        updated(store, key, number, *causes)
    with antipode.scope():
        _, found = store.get_at_home(key)
        with pytest.raises(UnmetError):
            antipode.barrier(timeout=0.3, exclude="objects")
        assert notes.get(key)[0] is None
        if not needed.datastores <= found.datastores:
            assert {"", notes.name} & {mark.subject for mark in found.incomplete}
        notes.topology.resume()
    antipode.barrier(needed, timeout=TIMEOUT_S)
