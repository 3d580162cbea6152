"""Table 2 on MySQL and MariaDB: what lies beside a value, and what plain clients see and do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import create_async_engine

import antipode
from antipode import ConfigurationError, Lineage, WriteId
from antipode.shim import Incomplete
from antipode.telemetry import Metric
from antipode_shims import mysql as shims
from antipode_testing import LagProxy

from ._servers import FLAVORS, Regions, only, regions

if TYPE_CHECKING:
    from collections.abc import Iterator

ELSEWHERE = WriteId("elsewhere", "log", 7, 490_000)
ELSEWHERE_TOO = WriteId("elsewhere-too", "log", 8, 490_000)


@pytest.fixture(params=FLAVORS)
def here(request: pytest.FixtureRequest) -> Iterator[Regions]:
    with regions(request.getfixturevalue(request.param)) as found:
        yield found


@pytest.fixture
def plain(here: Regions) -> Iterator[Any]:
    """A plain engine at the primary."""
    engine = create_engine(here.topology.url())
    yield engine
    engine.dispose()


def run(engine: Any, sql: str) -> Any:
    with engine.begin() as connection:
        result = connection.execute(text(sql))
        return result.all() if result.returns_rows else None


def read(here: Regions, key: str) -> tuple[bytes | None, Lineage]:
    """Read at the primary, the covering position aside."""
    with antipode.scope():
        value, lineage = here.writer.read(key)
    return value, lineage.only("elsewhere", "elsewhere-too")


def counted(name: str) -> int:
    return antipode.telemetry.metrics().get(Metric(name, "posts"), 0)


def write(here: Regions, key: str, value: bytes = b"1") -> None:
    with antipode.scope():
        here.writer.write(key, value, Lineage([ELSEWHERE]))


def test_plain_readers_see_what_they_saw(here: Regions, plain: Any) -> None:
    """``SELECT *`` has no column more, and a plain insert needs none."""
    write(here, "seen")
    assert [tuple(row) for row in run(plain, "SELECT * FROM antipode_kv WHERE k = 'seen'")] == [
        (b"seen", b"1")
    ]
    run(plain, "REPLACE INTO antipode_kv VALUES ('plain', '2')")
    before = counted("companion_absent")
    assert read(here, "plain") == (b"2", Lineage())
    assert counted("companion_absent") == before + 1


def test_plain_update_is_foreign(here: Regions, plain: Any) -> None:
    """A value that a plain client changed never shows the lineage of the value before."""
    write(here, "changed")
    run(plain, "UPDATE antipode_kv SET v = '2' WHERE k = 'changed'")
    before = counted("foreign")
    assert read(here, "changed") == (b"2", Lineage())
    assert counted("foreign") == before + 1
    write(here, "changed", b"3")
    assert read(here, "changed") == (b"3", Lineage([ELSEWHERE]))


def test_plain_delete_leaves_nothing(here: Regions, plain: Any) -> None:
    """A plain delete takes the lineage along, and a plain insert after ours has none."""
    write(here, "gone")
    run(plain, "DELETE FROM antipode_kv WHERE k = 'gone'")
    assert read(here, "gone") == (None, Lineage())


def test_deleted_rows_are_gone_for_plain_readers(here: Regions, plain: Any) -> None:
    """A delete leaves no row; its lineage lies in a table of its own."""
    write(here, "deleted")
    with antipode.scope():
        here.writer.delete("deleted", Lineage([ELSEWHERE_TOO]))
    assert run(plain, "SELECT * FROM antipode_kv WHERE k = 'deleted'") == []
    assert read(here, "deleted") == (None, Lineage([ELSEWHERE_TOO]))


def test_table_spelled_with_its_schema(here: Regions) -> None:
    """Services that spell the table's schema, or do not, find each other's deletions."""
    for table, key in (("app.antipode_kv", "k"), ("antipode_kv", "l")):
        write(here, key)
        deleter = shims.shim("posts", here.topology.url(), table=table)
        reader = shims.shim("posts", here.topology.url(), table="app.antipode_kv")
        with deleter, reader, antipode.scope():
            deleter.delete(key, Lineage([ELSEWHERE_TOO]))
            for found in (reader.read(key)[1], read(here, key)[1]):
                assert ELSEWHERE_TOO in found


def test_expired_tombstones_go(here: Regions, plain: Any) -> None:
    """A deletion takes along tombstones that are older than the horizon."""
    with antipode.scope():
        here.writer.delete("old")
    run(plain, "UPDATE antipode_tombstone SET h = 1 WHERE k = 'old'")
    with antipode.scope():
        here.writer.delete("new")
    assert run(plain, "SELECT k FROM antipode_tombstone WHERE k = 'old'") == []


def test_append_merges_and_stays_small(here: Regions, plain: Any) -> None:
    """Appending keeps the causes of what was there; a hundred times costs no more than once."""
    write(here, "list", b"a")
    for _ in range(20):
        with antipode.scope():
            here.writer.append("list", b"b", Lineage([ELSEWHERE_TOO]))
    assert read(here, "list") == (b"a" + b"b" * 20, Lineage([ELSEWHERE, ELSEWHERE_TOO]))
    ((length,),) = run(plain, "SELECT LENGTH(_ap) FROM antipode_kv WHERE k = 'list'")
    assert length < 100


def test_append_to_nothing_and_to_a_foreign_value(here: Regions, plain: Any) -> None:
    """A value that begins by appending has its lineage; a foreign one lends it none.

    What a deletion depended on stays: who sees that nothing else is there has seen it.
    """
    with antipode.scope():
        here.writer.delete("first")
        here.writer.append("first", b"x", Lineage([ELSEWHERE_TOO]))
    assert read(here, "first") == (b"x", Lineage([ELSEWHERE_TOO]))
    with antipode.scope():
        here.writer.delete("first", Lineage([ELSEWHERE]))
        here.writer.append("first", b"y", Lineage([ELSEWHERE_TOO]))
    assert read(here, "first") == (b"y", Lineage([ELSEWHERE, ELSEWHERE_TOO]))
    write(here, "foreign")
    run(plain, "UPDATE antipode_kv SET v = 'plain' WHERE k = 'foreign'")
    with antipode.scope():
        here.writer.append("foreign", b"!", Lineage([ELSEWHERE_TOO]))
    assert read(here, "foreign") == (b"plain!", Lineage([ELSEWHERE_TOO]))


def test_stored_bytes(here: Regions, plain: Any) -> None:
    """The lineage of one store costs less than a hundred bytes."""
    lineage = here.write("a")
    with antipode.scope():
        here.writer.write("b", b"1", lineage)
    ((length,),) = run(plain, "SELECT LENGTH(_ap) FROM antipode_kv WHERE k = 'b'")
    assert 10 < length < 100


def test_equal_writes_have_positions_of_their_own(here: Regions) -> None:
    """Writing what is there already, and deleting what is gone, is a write all the same."""
    versions = [only(here.write("same")).version for _ in range(2)]
    with antipode.scope():
        versions += [only(here.writer.delete("same", Lineage())).version for _ in range(2)]
    assert versions == sorted(set(versions), key=int)


def test_rolled_back_write_enters_nothing(here: Regions) -> None:
    """A write that the server refuses is no dependency, and leaves no doubt."""
    with antipode.scope() as scope:
        with pytest.raises(OperationalError):
            here.reader.write("refused", b"1")
        assert scope.lineage.empty


def test_missing_tables_are_named_with_their_statements(here: Regions) -> None:
    """Without its tables the shim raises and prints what makes them; it makes none itself."""
    lacking = shims.shim("posts", here.topology.url(), table="no_such", tombstones="none_such")
    try:
        with antipode.scope(), pytest.raises(ConfigurationError) as caught:
            lacking.write("k", b"1")
        for statement in lacking.ddl():
            assert statement in str(caught.value)
    finally:
        lacking.close()


def test_own_table_with_a_column_added(here: Regions, plain: Any) -> None:
    """A table of the application's own takes the column; names and types stay its own."""
    run(plain, "DROP TABLE IF EXISTS `my posts`")
    run(
        plain,
        "CREATE TABLE `my posts` (id INT PRIMARY KEY, title VARCHAR(40) DEFAULT '',"
        " `body text` VARCHAR(200) CHARACTER SET utf8mb4) ",
    )
    layout = shims.Layout("app.my posts", "id", "body text")
    own = shims.shim("posts", here.topology.url(), table=layout.table, key="id", value="body text")
    try:
        with antipode.scope(), pytest.raises(ConfigurationError) as caught:
            own.write(1, "Grüße, 世界")
        assert layout.alter() in str(caught.value)
        run(plain, layout.alter())
        run(plain, "INSERT INTO `my posts` (id, title) VALUES (1, 'kept')")
        with antipode.scope():
            own.write(1, "Grüße, 世界 %s", Lineage([ELSEWHERE]))
            value, lineage = own.read(1)
        assert value == "Grüße, 世界 %s"
        assert ELSEWHERE in lineage
        assert run(plain, "SELECT * FROM `my posts`")[0][1] == "kept"
    finally:
        own.close()


def test_on_read_ignore(here: Regions) -> None:
    """With ``on_read="ignore"`` a read returns its lineage and leaves the scope alone."""
    write(here, "ignored")
    reader = shims.shim("posts", here.topology.url(), on_read="ignore")
    try:
        with antipode.scope() as scope:
            assert ELSEWHERE in reader.read("ignored")[1]
            assert scope.lineage.empty
    finally:
        reader.close()


def test_values_are_never_none(here: Regions) -> None:
    """None is what a missing value reads as: it cannot be written."""
    with antipode.scope(), pytest.raises(TypeError):
        here.writer.write("k", None)


def test_async_shim(here: Regions) -> None:
    """The asyncio shim writes, appends, deletes, waits and reads as the synchronous one does."""
    topology = here.topology

    async def request() -> None:
        writer = shims.shim_async("posts", topology.url(driver="mysql+aiomysql"))
        engine = create_async_engine(topology.url(topology.replica, driver="mysql+aiomysql"))
        reader = shims.shim_async("posts", engine, reads_from="replica")
        topology.set_lag(30)
        with antipode.scope() as scope:
            lineage = await writer.write("async", b"\x00\xff'%s", Lineage())
            assert lineage == scope.lineage
            await reader.wait_async(timeout=10)
            value, found = await reader.read("async")
            assert value == b"\x00\xff'%s"
            assert found.datastores == {"posts"}
            await writer.append("async", b"!")
            await antipode.barrier_async(timeout=10, at="read")
            assert (await reader.read("async"))[0] == b"\x00\xff'%s!"
            await writer.delete("async")
            await reader.wait_async(timeout=10)
            assert (await reader.read("async"))[0] is None
        await writer.aclose()
        await reader.aclose()
        await engine.dispose()

    asyncio.run(request())


def test_cancelled_write_is_in_doubt(here: Regions) -> None:
    """An asyncio write that is cancelled while its commit is in flight leaves a mark."""
    topology = here.topology
    with LagProxy(topology.primary) as slow:

        async def request() -> None:
            url = topology.url(slow.address, driver="mysql+aiomysql")
            engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
            writer = shims.shim_async("posts", engine)
            with antipode.scope() as scope:
                await writer.read("k")
                slow.set_lag(60_000)
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(writer.write("k", b"1"), 0.3)
                assert Incomplete("posts", "in_doubt") in scope.lineage.incomplete
            slow.cut()
            await writer.aclose()
            await engine.dispose()

        asyncio.run(request())


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("sqlite://", "not supported"),
        (42, "expected a"),
    ],
)
def test_wrong_engines_are_refused(engine: Any, message: str) -> None:
    """An engine of another database, or none at all, is refused with what to do."""
    with pytest.raises(ConfigurationError, match=message):
        shims.shim("posts", engine)


def test_faces_are_told_apart() -> None:
    """An asyncio engine does not go into ``shim``, nor a synchronous one into ``shim_async``."""
    url = "mysql+{}://nobody@127.0.0.1:1/none"
    with pytest.raises(ConfigurationError, match="shim_async"):
        shims.shim("posts", create_async_engine(url.format("aiomysql")))
    with pytest.raises(ConfigurationError, match="shim"):
        shims.shim_async("posts", create_engine(url.format("pymysql")))
