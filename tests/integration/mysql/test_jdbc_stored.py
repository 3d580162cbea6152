"""Lineages beside rows through JDBC: what Java stores Python reads, and the reverse."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import ConfigurationError, Lineage, WriteId
from antipode.telemetry import Metric
from tests.contract._servers import described, regions
from tests.integration.mysql.test_jdbc import Client
from tests.integration.mysql.test_stored import beside, found

from ._clients import NOTES, Sql, run
from ._stored import CAUSE, IN_COLUMNS, OTHER, UNNAMED, make_posts, make_unnamed_writes, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.agent.client import RemoteAntipode
    from tests.agent.lending import Lend

pytestmark = pytest.mark.slow

NOTHING = "SELECT body FROM posts WHERE id = 1"


class Java:
    """A process in Java with a pool that keeps lineages beside the rows of `posts`."""

    def __init__(self, posts: Sql, remote: RemoteAntipode, stack: ExitStack) -> None:
        self.posts = posts
        self.remote = remote
        self._stack = stack
        self._client = self.client(["posts"])

    def client(self, tables: list[str]) -> Client:
        """Another pool, of the primary."""
        topology = self.posts.topology
        server = described(topology.store, topology, topology.primary)
        options: dict[str, Any] = {"client": True, "tables": tables}
        client = Client(self.remote, topology.store, NOTES, server, **options)
        return self._stack.enter_context(closing(client))

    def run(self, call: str, statement: str, *parameters: str) -> Any:
        """One call of JDBC."""
        given = {"call": call, "sql": statement, "parameters": list(parameters)}
        return self._client._ask("jdbc", **given)

    def learned(self, statement: str, *parameters: str, call: str = "query") -> Lineage:
        """What a request knows that saw this, on a connection that went back to its pool."""
        with self.remote.scope() as scope:
            self.run(call, statement, *parameters)
            self.run("close", "")
        return scope.lineage


@pytest.fixture(params=IN_COLUMNS)
def java(request: pytest.FixtureRequest, lend: Lend) -> Iterator[Java]:
    """One for each store."""
    store, _ = request.param
    topology = request.getfixturevalue(f"antipode_{store}")
    make_posts(topology)
    with ExitStack() as stack:
        stack.enter_context(regions(store, topology))
        posts = stack.enter_context(closing(Sql(topology)))
        yield Java(posts, lend("java"), stack)


def test_rows_carry_their_lineage_from_java_to_python(java: Java) -> None:
    """An insert stores the lineage of its request."""
    with java.remote.scope(Lineage([CAUSE])):
        java.run("update", "INSERT INTO posts VALUES (1, 'a', 'b')")
    assert CAUSE in found(java.posts, "SELECT body FROM posts WHERE id = 1")


def test_rows_carry_their_lineage_from_python_to_java(java: Java) -> None:
    """Who selects a row depends on its write's causes, and on the write by a covering position."""
    with antipode.scope(Lineage([CAUSE])) as scope:
        run(beside(java.posts), "INSERT INTO posts VALUES (1, 'a', 'b')")
        (own,) = (write for write in scope.lineage if write.datastore == NOTES)
    read = java.learned("SELECT body FROM posts WHERE id = 1")
    assert CAUSE in read
    (covering,) = (each for each in read if each.key == own.key)
    assert covering.covering
    assert int(covering.version) >= int(own.version)
    assert not read.incomplete


def test_a_transaction_tells_what_it_read_before_it_ends(java: Java) -> None:
    """The lineage may be used while its connection is; what it reads later has a position, too."""
    writer = beside(java.posts)
    run(writer, "INSERT INTO posts VALUES (1, 'a', 'b')")
    with java.remote.scope() as scope:
        java.run("begin", "")
        java.run("read_committed", "")
        java.run("query", "SELECT body FROM posts WHERE id = 1")
        assert not scope.lineage.incomplete
        with antipode.scope(Lineage([CAUSE])):
            run(writer, "UPDATE posts SET body = 'c' WHERE id = 1")
        java.run("query", "SELECT body FROM posts WHERE id = 1")
        key, version = java.posts.position()
        java.run("commit", "")
        java.run("close", "")
    assert CAUSE in scope.lineage
    assert any(each.key == key and int(each.version) >= version for each in scope.lineage)


def test_an_unbuffered_result_shows_lineages_as_it_is_read(java: Java) -> None:
    """Rows count as the application comes to them; a position is asked for at the end."""
    with antipode.scope(Lineage([CAUSE])):
        run(beside(java.posts), "INSERT INTO posts VALUES (1, 'a', 'b'), (2, 'c', 'd')")
    with java.remote.scope() as scope:
        java.run("stream", "SELECT body FROM posts")
        assert CAUSE not in scope.lineage
        java.run("read_on", "")
        assert CAUSE in scope.lineage
        java.run("close", "")
    assert any(each.datastore == NOTES for each in scope.lineage)
    assert not scope.lineage.incomplete


@pytest.mark.parametrize("statement", UNNAMED)
def test_a_procedure_and_a_trigger_write_the_lineage_of_now(java: Java, statement: str) -> None:
    """Not that of who had the connection before, whose statements named the table."""
    make_unnamed_writes(java.posts)
    with java.remote.scope(Lineage([CAUSE])):
        java.run("update", "INSERT INTO posts VALUES (1, 'a', 'b')")
        java.run("close", "")
    run(java.posts.plain(), "REPLACE INTO posts VALUES (1, 'plain', 'b')")
    with java.remote.scope(Lineage([OTHER])):
        java.run("update", statement)
        java.run("close", "")
    read = found(java.posts, "SELECT body FROM posts")
    assert OTHER in read
    assert CAUSE not in read


def test_an_update_keeps_what_it_does_not_supersede(java: Java) -> None:
    """Java's updates merge with Python's text, and leave one item of a log that moves along."""
    with antipode.scope(Lineage([CAUSE])):
        run(beside(java.posts), "INSERT INTO posts VALUES (1, 'a', 'b')")
    for number in range(8, 12):
        moved = WriteId(OTHER.datastore, OTHER.key, number, written_hour=490_000)
        with java.remote.scope(Lineage([moved])):
            java.run("update", "UPDATE posts SET body = 'c' WHERE id = 1")
    assert len(texts(java.posts)) == 2
    read = found(java.posts, "SELECT body FROM posts WHERE id = 1")
    assert {each for each in read if each.datastore == "elsewhere"} == {CAUSE, moved}


@pytest.mark.parametrize("call", ["query", "prepared"])
def test_who_finds_nothing_depends_on_the_deletion(java: Java, call: str) -> None:
    """By a literal as by a parameter, and of no other row."""
    writer = beside(java.posts)
    run(writer, "INSERT INTO posts VALUES (1, 'a', 'b')")
    with antipode.scope(Lineage([CAUSE])):
        run(writer, "DELETE FROM posts WHERE id = 1")
    where = "SELECT body FROM posts WHERE id = "
    one, two = ("?", "?") if call == "prepared" else ("1", "2")
    named = [["1"], ["2"]] if call == "prepared" else [[], []]
    assert CAUSE in java.learned(where + one, *named[0], call=call)
    assert CAUSE not in java.learned(where + two, *named[1], call=call)


def test_a_deletion_by_java_leaves_its_lineage(java: Java) -> None:
    """Python's reader who finds nothing depends on it."""
    with java.remote.scope(Lineage([OTHER])):
        java.run("update", "INSERT INTO posts VALUES (1, 'a', 'b')")
    with java.remote.scope(Lineage([CAUSE])):
        java.run("update", "DELETE FROM posts WHERE id = 1")
    assert CAUSE in found(java.posts, NOTHING)


def test_results_have_nothing_that_was_not_asked_for(java: Java) -> None:
    """Neither columns nor rows."""
    java.run("update", "INSERT INTO posts VALUES (1, 'a', 'b'), (2, 'c', 'd')")
    joined = "SELECT p.*, 7 AS n FROM posts p LEFT JOIN plain q ON q.id = p.id ORDER BY p.id"
    assert java.run("columns", joined) == ["id", "body", "extra", "n"]
    assert java.run("query", joined) == ["1", "2"]


def test_a_count_is_covered_and_shows_nothing_else(java: Java) -> None:
    """What its rows depend on elsewhere does not enter, which is counted; its position does."""
    with java.remote.scope(Lineage([CAUSE])):
        java.run("update", "INSERT INTO posts VALUES (1, 'a', 'b')")
    read = java.learned("SELECT COUNT(*) FROM posts")
    assert CAUSE not in read
    key, version = java.posts.position()
    assert any(each.key == key and int(each.version) >= version for each in read)
    assert java.remote.metrics()[Metric("unread_lineage", NOTES)] == 1


def test_a_table_that_was_not_migrated_is_refused(java: Java) -> None:
    """At the first statement about it, with what to run."""
    client = java.client(["plain"])
    with java.remote.scope(), pytest.raises(ConfigurationError, match="migration plain"):
        client.call("update", "INSERT INTO plain VALUES (1, 'a', 'b')")


def test_a_row_of_another_connection_is_told_of(java: Java) -> None:
    """It is stored without what the request wrote in a transaction that is open; its own is not."""
    told, insert = Metric("sent_before_commit", NOTES), "INSERT INTO posts VALUES ({}, 'a', 'b')"
    other = java.client(["posts"])
    with java.remote.scope():
        java.run("begin", "")
        for number in (1, 2):
            java.run("update", insert.format(number))
        assert told not in java.remote.metrics()
        for number in (3, 4):
            other.call("update", insert.format(number))
        assert java.remote.metrics()[told] == 1
        java.run("commit", "")
        other.call("update", insert.format(5))
    assert java.remote.metrics()[told] == 1


def test_what_is_read_through_a_view_is_counted(java: Java) -> None:
    """Its rows show no lineages, also through a view of a view; its position covers them."""
    topology = java.posts.topology
    topology.execute("CREATE OR REPLACE VIEW app.seen AS SELECT * FROM app.posts")
    topology.execute("CREATE OR REPLACE VIEW app.above AS SELECT id FROM app.seen")
    topology.wait_replicated()
    with java.remote.scope(Lineage([CAUSE])):
        java.run("update", "INSERT INTO posts VALUES (1, 'a', 'b')")
    try:
        for number, name in enumerate(("seen", "above"), 1):
            read = java.learned(f"SELECT id FROM {name}")  # noqa: S608 - a name
            assert CAUSE not in read
            assert any(each.covering for each in read if each.datastore == NOTES)
            assert java.remote.metrics()[Metric("unread_lineage", NOTES)] == number
    finally:
        topology.execute("DROP VIEW app.above, app.seen")
