"""Two writers of two parts of one value: who reads either depends on what both depended on.

A part is a field of a document, or an entry that was appended; each writer has seen causes of its
own in another store. Servers merge: neither writer reads what the other wrote.
"""

from __future__ import annotations

import threading
import uuid
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine

import antipode
from antipode import Lineage, WriteId
from antipode_shims import mysql
from tests.end_to_end._xcy_stores import TIMEOUT_S, at_once, held_back, opened, over

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PARTS = ("a", "b")
UPDATES = 60
DELETIONS = 25
PAIRS = over(("mysql", "redis"), ("mariadb", "embedded"), ("mongodb", "mysql"))
SQL = over("mysql", "mariadb")


def cause(part: str, number: int) -> WriteId:
    """What a writer has seen before its update of that number: a log of its own, elsewhere."""
    return WriteId("elsewhere", part, number, 490_000)


@pytest.fixture
def key() -> str:
    return f"parts-{uuid.uuid4().hex}"


@pytest.fixture(params=[*over("mysql", "mariadb", "mongodb")])
def store(request: pytest.FixtureRequest) -> Iterator[Any]:
    with opened(request, {"lists": request.param[0]}) as (made,):
        yield made


@pytest.fixture(params=SQL)
def autocommit(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A store whose writer's statements each commit alone."""
    with ExitStack() as stack:
        (made,) = stack.enter_context(opened(request, {"lists": request.param[0]}))
        engine = create_engine(made.topology.url(), isolation_level="AUTOCOMMIT")
        stack.callback(engine.dispose)
        made.home.close()
        made.home = stack.enter_context(mysql.shim("lists", engine))
        yield made


def begin(store: Any, key: str) -> None:
    """A value with every part, which each later reader finds."""
    with antipode.scope():
        for part in PARTS:
            store.change(key, part, 0, Lineage([cause(part, 0)]))


def writer(store: Any, key: str, part: str) -> Callable[[], None]:
    """Updates of one part, each with a later cause."""

    def work() -> None:
        for number in range(1, UPDATES + 1):
            with antipode.scope():
                store.change(key, part, number, Lineage([cause(part, number)]))

    return work


def check(store: Any, found: tuple[Any, Lineage]) -> dict[str, int]:
    """Assert that a reader depends on the causes of all that it saw; what it saw."""
    value, lineage = found
    seen: dict[str, int] = store.parts(value)
    known = {w.key: int(w.version) for w in lineage.only("elsewhere")}
    assert not lineage.incomplete
    assert all(known.get(part, -1) >= number for part, number in seen.items()), (seen, lineage)
    return seen


def all_seen(store: Any, key: str) -> None:
    """Assert that both regions show the last update of each part, with its cause."""
    with antipode.scope():
        seen = check(store, store.get_at_home(key))
    store.topology.wait_replicated()
    with antipode.scope():
        assert check(store, store.get(key)) == seen == dict.fromkeys(PARTS, UPDATES)


def read_while_written(store: Any, key: str) -> None:
    """Two writers change a part each, while a reader in each region checks what he sees."""
    begin(store, key)
    store.topology.wait_replicated()
    done = threading.Event()

    def reads(read: Callable[[str], Any]) -> Callable[[], None]:
        def work() -> None:
            while not done.wait(0.001):
                with antipode.scope():
                    check(store, read(key))

        return work

    def writes() -> None:
        try:
            at_once(*(writer(store, key, part) for part in PARTS))
        finally:
            done.set()

    at_once(writes, reads(store.get), reads(store.get_at_home))
    all_seen(store, key)


def test_readers_of_parts(store: Any, key: str) -> None:
    """While two writers change a part each, no read of either region misses a cause."""
    read_while_written(store, key)


def test_statements_that_commit_alone(autocommit: Any, key: str) -> None:
    """Where each statement commits by itself, no append is lost between two of another."""
    read_while_written(autocommit, key)


def test_absence_is_never_bare(autocommit: Any, key: str) -> None:
    """Nor does anybody find nothing without the lineage of its deletion."""
    bare: list[str] = []
    names = [f"{key}-{number}" for number in range(DELETIONS)]
    with antipode.scope():
        for name in names:
            autocommit.put(name, b"1")

    def delete() -> None:
        for number, name in enumerate(names):
            with antipode.scope():
                autocommit.delete(name, Lineage([cause("a", number)]))

    def read() -> None:
        for number, name in enumerate(names):
            value: bytes | None = b""
            while value is not None:
                with antipode.scope():
                    value, lineage = autocommit.get_at_home(name)
            if cause("a", number) not in lineage:
                bare.append(name)

    at_once(delete, read)
    assert not bare


@pytest.mark.parametrize("sql", SQL)
def test_deletions_do_not_disturb_each_other(
    request: pytest.FixtureRequest, sql: tuple[str], key: str
) -> None:
    """Whoever deletes takes old tombstones along, and never waits for another's in a deadlock."""
    with opened(request, {"lists": sql[0]}) as (store,):

        def work(index: int) -> Callable[[], None]:
            def deletes() -> None:
                for number in range(DELETIONS):
                    with antipode.scope():
                        store.delete(f"{key}-{index}-{number % 3}")
                    if number % DELETIONS == index:
                        store.topology.execute("UPDATE app.antipode_tombstone SET h = 1")

            return deletes

        at_once(*(work(index) for index in range(4)))


@pytest.mark.parametrize("kinds", PAIRS)
def test_either_part_waits_for_both(
    request: pytest.FixtureRequest, kinds: tuple[str, str], key: str
) -> None:
    """A reader of a value waits for what the writer of each part had written before."""
    with opened(request, dict(zip(("lists", "notes"), kinds, strict=True))) as (lists, notes):
        begin(lists, key)
        notes.topology.pause()
        for number, part in enumerate(PARTS, start=1):
            with antipode.scope():
                notes.put(f"{key}-{part}", part.encode())
                lists.change(key, part, number)
        lists.topology.wait_replicated()
        with antipode.scope() as scope:
            lists.get(key)
            scope.remove(*(cause(part, 0) for part in PARTS))
            held_back(notes)
            notes.topology.resume()
            antipode.barrier(timeout=TIMEOUT_S)
            shown = [notes.get(f"{key}-{part}")[0] for part in PARTS]
        assert shown == [part.encode() for part in PARTS]


def test_covering_positions_merge(store: Any, key: str) -> None:
    """Parts written by whoever had read something keep what was read, of each writer's log."""
    begin(store, key)
    with antipode.scope():
        for part in PARTS:
            store.change(key, part, 1, Lineage([replace(cause(part, 7), covering=True)]))
        found = store.get_at_home(key)[1]
    assert {replace(cause(part, 7), covering=True) for part in PARTS} <= set(found)
