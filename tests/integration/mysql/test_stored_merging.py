"""A row that is updated again and again keeps one item for each log, and loses nothing."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import count, pairwise
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage, WriteId
from antipode.shim import Incomplete, encode, stored_text
from antipode_shims._sql.superseded import superseded
from tests.conformance._vectors import HERE, load
from tests.integration.mysql.test_stored import beside, found

from ._clients import run
from ._stored import CAUSE, OTHER, texts

if TYPE_CHECKING:
    from ._clients import Sql

WRITERS = 4
UPDATES = 1000
FIRST = "SET @antipode_lineage = %s, @antipode_passed = NULL, @antipode_until = 0"
LOG = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def moving(number: int, *, covering: bool = False) -> WriteId:
    """A position of one log."""
    return WriteId("elsewhere", LOG, number, 490_000 + number // 100, covering)


def test_causes_that_move_along_a_log(posts: Sql) -> None:
    """A thousand updates by several writers: each has at most the item of its last one there."""
    with antipode.scope():
        run(beside(posts), "INSERT INTO posts VALUES (1, 'a', 'b')")
    numbers = count(1)

    def write(connection: object) -> None:
        for _ in range(UPDATES // WRITERS):
            number = next(numbers)
            with antipode.scope(Lineage([moving(number)])):
                run(connection, "UPDATE posts SET body = %s WHERE id = 1", str(number))

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, [beside(posts) for _ in range(WRITERS)]))
    assert len(texts(posts)) <= WRITERS
    read = found(posts, "SELECT * FROM posts")
    assert [each for each in read if each.datastore == "elsewhere"] == [moving(UPDATES)]
    assert not read.incomplete


def test_read_and_write_again(posts: Sql) -> None:
    """Requests that read the row before they update it leave one text, of the logs that it knows.

    Each knows the position of the write before and a covering one of its read, both of this store.
    """
    connection = beside(posts)
    with antipode.scope(Lineage([CAUSE, OTHER])):
        run(connection, "INSERT INTO posts VALUES (1, 'a', 'b')")
    for number in range(20):
        with antipode.scope():
            run(connection, "SELECT * FROM posts")
            run(connection, "UPDATE posts SET body = %s", str(number))
    (text,) = texts(posts)
    lineage = antipode.deserialize(text)
    assert {CAUSE, OTHER} < set(lineage)
    assert len(lineage) == len({(each.key, each.covering) for each in lineage})
    assert not lineage.incomplete


def test_nothing_is_lost(posts: Sql) -> None:
    """Exact and covering positions, marks and versions without an order, forth and back."""
    dice = random.Random(5)
    told: list[Lineage] = []
    connection = beside(posts)
    with antipode.scope():
        run(connection, "INSERT INTO posts VALUES (1, 'a', 'b')")
    for step in range(120):
        writes = [
            WriteId("elsewhere", log, dice.randrange(40 * step + 1), 0, dice.random() < 0.5)
            for log in dice.sample(["0.1", "0.2", LOG], 2)
        ]
        opaque = [WriteId("files", "a", f"v{dice.randrange(3)}", 7)]
        marks = [("files", "in_doubt")] if dice.random() < 0.1 else []
        told.append(Lineage(writes + opaque[: step % 2], incomplete=marks))
        with antipode.scope(told[-1]):
            run(connection, "UPDATE posts SET body = %s", str(step))
    stored = Lineage().merge(*(antipode.deserialize(text) for text in texts(posts)))
    expected = Lineage().merge(*told)
    assert set(stored) == set(expected)
    assert stored.incomplete == expected.incomplete


def test_an_earlier_cause_takes_nothing(posts: Sql) -> None:
    """Who comes late with an earlier position, or one of another kind, joins."""
    connection = beside(posts)
    with antipode.scope(Lineage([moving(9)])):
        run(connection, "INSERT INTO posts VALUES (1, 'a', 'b')")
    for late in (moving(8), moving(10, covering=True)):
        with antipode.scope(Lineage([late])):
            run(connection, "UPDATE posts SET body = %s", str(late.version))
    assert moving(9) in found(posts, "SELECT * FROM posts")
    with antipode.scope(Lineage([moving(10)])):
        run(connection, "UPDATE posts SET body = 'last'")
    assert {stored_text(Lineage([moving(10, covering=c)])) for c in (False, True)} == set(
        texts(posts)
    )


def test_what_is_of_another_version_stays(posts: Sql) -> None:
    """Its items may mean something else; and so does all where a writer sends no pattern."""
    first, second, third = (stored_text(Lineage([moving(number)])) for number in (1, 2, 3))
    plain = posts.plain()
    run(plain, "SET @antipode_lineage = %s, @antipode_until = 0", f"2{first}")
    run(plain, "INSERT INTO posts VALUES (1, 'a', 'b')")
    for number in (1, 2):
        with antipode.scope(Lineage([moving(number)])):
            run(beside(posts), "UPDATE posts SET body = %s", str(number))
    assert texts(posts) == [second, first, f"2{first}"]
    run(plain, "SET @antipode_lineage = %s", second)
    run(plain, "REPLACE INTO posts VALUES (1, 'a', 'b')")
    run(plain, "SET @antipode_lineage = %s", third)
    run(plain, "UPDATE posts SET body = 'c'")
    assert texts(posts) == [third, second]


def test_a_long_lineage_is_no_reason_for_a_mark(posts: Sql) -> None:
    """What one writer stored whole stays whole in a plain update, and in one of the same cause."""
    with antipode.scope():
        run(beside(posts), "INSERT INTO posts VALUES (1, 'a', 'b')")
    long = stored_text(Lineage(WriteId("elsewhere", f"log{n}", n, 1) for n in range(20)))
    plain = posts.plain()
    run(plain, "SET @antipode_until = 0")
    for statement in (
        "REPLACE INTO posts VALUES (1, 'a', 'b')",
        "UPDATE posts SET body = 'c'",
        "UPDATE posts SET body = 'd'",
    ):
        run(plain, "SET @antipode_lineage = %s", long * 4 if "'d'" not in statement else None)
        run(plain, statement)
        assert texts(posts) == [long * 4]
    with antipode.scope(Lineage([CAUSE])):
        run(beside(posts), "UPDATE posts SET body = 'e'")
    assert texts(posts) == [stored_text(Lineage([CAUSE])), "1~isize.-"]
    assert Incomplete("", "size") in found(posts, "SELECT * FROM posts").incomplete


def test_the_longest_lineage(posts: Sql) -> None:
    """Its pattern is one that each server takes, and drops what it can."""
    plain = posts.plain()
    for number in (1, 2):
        logs = (WriteId("elsewhere", f"log{n}", 2**64 - 3 + number, 1) for n in range(900))
        text = encode(Lineage(logs))
        run(plain, "SET @antipode_lineage = %s, @antipode_passed = %s", text, superseded(text))
        run(plain, "INSERT INTO posts VALUES (1, 'a', 'b') ON DUPLICATE KEY UPDATE body = 'c'")
    assert texts(posts) == [text, "1~isize.-"]


def test_an_update_costs_no_round_trip_more(posts: Sql) -> None:
    """The pattern goes with the lineage; the server merges in the update itself."""
    connection = beside(posts)
    with antipode.scope():
        run(connection, "INSERT INTO posts VALUES (1, 'a', 'b')")
    asked = "SHOW GLOBAL STATUS LIKE 'Questions'"
    counts = []
    for number in range(30):
        counts.append(int(posts.topology.execute(asked)[0]["Value"]))
        with antipode.scope(Lineage([moving(number)])):
            run(connection, "UPDATE posts SET body = %s", str(number))
    assert {two - one for one, two in pairwise(counts)} == {3}  # Its lineage, itself, and asking.


@pytest.mark.slow
def test_the_server_merges_as_the_vectors_say(posts: Sql) -> None:
    """What the trigger makes of a row's texts, with the pattern that a writer sends."""
    plain = posts.plain()
    for vector in load(HERE / "S3-stored" / f"{posts.topology.store}.json")["updates"]:
        run(plain, FIRST, vector["row"])
        run(plain, "REPLACE INTO posts VALUES (1, 'a', 'b')")
        text, before = vector["text"], texts(posts)
        pattern = superseded(text) if text else ""
        run(plain, "SET @antipode_lineage = %s, @antipode_passed = %s", text, pattern or None)
        run(plain, "UPDATE posts SET body = 'c'")
        after = vector["after"]
        assert before == (vector["row"].split(",") if vector["row"] else []), vector["name"]
        assert texts(posts) == (after.split(",") if after else []), vector["name"]
