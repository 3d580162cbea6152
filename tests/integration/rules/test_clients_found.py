"""A client whose address a rule names is covered, whatever its arguments say and when it is made.

The clients of Redis here connect to nothing: that a rule covers one shows in its class.
"""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode.diagnostics import clients_without_names
from antipode.shim import shims_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from antipode_testing import MongoDBTopology, MySQLTopology

redis: Any = pytest.importorskip("redis")
pytestmark = [pytest.mark.usefixtures("covered"), pytest.mark.slow]
USER: dict[str, Any] = {"user": "app", "password": "app", "database": "app"}


def is_covered(client: Any) -> bool:
    return type(client) is not redis.Redis


def client(host: str) -> Any:
    return redis.Redis(host=host)


def test_a_client_between_two_calls_of_setup() -> None:
    """The second call covers what was made since, by the rules of then; names stay as they are."""
    antipode.setup(datastores="feed=redis://first.test", skip=["redis"])
    skipped = client("first.test")
    assert not is_covered(skipped)
    antipode.setup()
    between = client("second.test")
    assert (is_covered(skipped), is_covered(between)) == (True, False)
    antipode.setup(datastores="posts=redis://second.test, other=redis://first.test")
    assert is_covered(between)
    assert [len(shims_of(name)) for name in ("feed", "posts", "other")] == [1, 1, 0]
    antipode.setup(skip=["redis"])
    assert is_covered(client("second.test"))


def test_who_says_a_name_first() -> None:
    """A call for a client, rules for a store, the setting; `setup(datastores=)` is the setting."""
    from antipode_shims import redis as shim

    antipode.configure(datastores="setting=redis://first.test")
    antipode.setup(datastores="setup=redis://second.test")
    assert not is_covered(client("first.test"))
    made = [client("second.test")]
    shim.instrument({"store": "redis://second.test"})
    made += [client("second.test"), client("second.test")]
    shim.instrument_client(made[2], datastore="call")
    assert [len(shims_of(name)) for name in ("setup", "store", "call")] == [1, 1, 1]
    shim.uninstrument_client(made[2])


@pytest.fixture
def frozen() -> Iterator[Callable[[], None]]:
    """Put all objects aside, as servers do before they fork."""
    yield gc.freeze
    gc.unfreeze()


def test_a_client_that_was_frozen(frozen: Callable[[], None]) -> None:
    """Objects that ``gc.freeze()`` put aside are seen, and stay aside."""
    before = client("first.test")
    frozen()
    antipode.setup(datastores="feed=redis://first.test")
    assert is_covered(before)
    assert gc.get_freeze_count()


class Cycle:
    """What is freed by a collection alone."""

    def __init__(self) -> None:
        self.me = self


def test_garbage_is_not_put_aside(frozen: Callable[[], None]) -> None:
    """What nobody refers to any more is freed still, where a server froze its objects."""
    frozen()
    gone = weakref.ref(Cycle())
    antipode.setup(datastores="feed=redis://first.test")
    gc.collect()
    assert gone() is None


def watched_by(*hosts: str) -> Any:
    from redis.sentinel import Sentinel

    return Sentinel([(host, 26379) for host in hosts]).master_for("mymaster")


def test_two_deployments_of_sentinel_with_one_service_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A rule for the name is for the one seen first; a warning says how to name both."""
    antipode.setup(datastores="posts=redis+sentinel://mymaster")
    clients = [watched_by("a.test", "b.test"), watched_by("b.test"), watched_by("c.test")]
    assert [type(each) is not redis.Redis for each in clients] == [True, True, False]
    assert "NAME=redis+sentinel://c.test:26379/mymaster" in caplog.text
    assert any("c.test" in where for where in clients_without_names())


def test_a_deployment_that_a_rule_names_by_its_sentinels() -> None:
    """It is that one alone; another has another name, and a third none."""
    antipode.setup(
        datastores={
            "posts": "redis+sentinel://a.test,b.test/mymaster",
            "sessions": "redis+sentinel://c.test:26379/mymaster",
        }
    )
    clients = [watched_by("b.test"), watched_by("c.test"), watched_by("d.test")]
    assert [type(each) is not redis.Redis for each in clients] == [True, True, False]
    assert len(shims_of("posts")) == len(shims_of("sessions")) == 1


@pytest.fixture
def table(antipode_mysql: MySQLTopology) -> None:
    """A table to write to."""
    pymysql: Any = pytest.importorskip("pymysql")
    address = antipode_mysql.primary
    with pymysql.connect(host=address.host, port=address.port, autocommit=True, **USER) as plain:
        plain.cursor().execute(
            "CREATE TABLE IF NOT EXISTS by_address (id INT PRIMARY KEY AUTO_INCREMENT)"
        )


@pytest.fixture
def settings(antipode_mysql: MySQLTopology, tmp_path: Path) -> str:
    """A file that says where the server is, as Django's documentation has it."""
    address, file = antipode_mysql.primary, tmp_path / "my.cnf"
    lines = ["[client]", f"host={address.host}", f"port={address.port}"]
    file.write_text("\n".join([*lines, "user=app", "password=app", "database=app\n"]))
    return str(file)


def from_a_file(settings: str) -> Any:
    return pytest.importorskip("MySQLdb").connect(read_default_file=settings, autocommit=True)


def from_a_file_by_an_engine(settings: str) -> Any:
    sqlalchemy: Any = pytest.importorskip("sqlalchemy")
    pytest.importorskip("MySQLdb")
    options = {"read_default_file": settings}
    engine = sqlalchemy.create_engine(
        "mysql+mysqldb://", connect_args=options, isolation_level="AUTOCOMMIT"
    )
    connection = engine.raw_connection()
    connection.detach()
    return connection


def lineage_of(connection: Any) -> set[str]:
    """The datastores of what one row that is written leaves."""
    with antipode.scope() as scope:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO by_address VALUES ()")
        assert not scope.lineage.incomplete
        return {write.datastore for write in scope.lineage}


@pytest.mark.slow
@pytest.mark.store("mysql")
@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("connect", [from_a_file, from_a_file_by_an_engine])
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_mysqlclient_that_reads_its_address_in_a_file(
    antipode_mysql: MySQLTopology,
    settings: str,
    connect: Callable[[str], Any],
    *,
    before: bool,
) -> None:
    """What its socket is connected to counts, and a connection that was made before is found."""
    made = connect(settings) if before else None
    antipode.setup(datastores=f"notes=mysql://{antipode_mysql.primary}")
    connection = connect(settings) if made is None else made
    assert lineage_of(connection) == {"notes"}
    if not before:  # Its user is known, so that barriers poll on connections of their own.
        with antipode.scope(), connection.cursor() as cursor:
            cursor.execute("INSERT INTO by_address VALUES ()")
            assert antipode.barrier(timeout=15, only="notes").ok
    connection.close()


@pytest.mark.store("mysql")
@pytest.mark.usefixtures("table")
def test_a_connection_of_mysqlclient_that_was_made_before(antipode_mysql: MySQLTopology) -> None:
    """It keeps no argument, and its socket says where it leads."""
    address = antipode_mysql.primary
    connection: Any = pytest.importorskip("MySQLdb").connect(
        host=address.host, port=address.port, autocommit=True, **USER
    )
    antipode.setup(datastores=f"notes=mysql://{address}")
    assert lineage_of(connection) == {"notes"}
    connection.close()


@pytest.mark.store("mysql")
@pytest.mark.usefixtures("table")
def test_clients_of_pymysql_that_were_made_before(antipode_mysql: MySQLTopology) -> None:
    """A connection, an engine that has none yet, and one whose pool has one."""
    pymysql, sqlalchemy = map(pytest.importorskip, ("pymysql", "sqlalchemy"))
    address, url = antipode_mysql.primary, antipode_mysql.url(antipode_mysql.primary)
    connection = pymysql.connect(host=address.host, port=address.port, autocommit=True, **USER)
    engines = [sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT") for _ in range(2)]
    engines[1].connect().close()
    antipode.setup(datastores=f"notes=mysql://{address}")
    assert lineage_of(connection) == {"notes"}
    for engine in engines:
        with antipode.scope() as scope, engine.connect() as connected:
            connected.exec_driver_sql("INSERT INTO by_address VALUES ()")
            assert {each.datastore for each in scope.lineage} == {"notes"}
        engine.dispose()
    connection.close()


@pytest.mark.store("mongodb")
def test_a_client_of_a_set_that_a_rule_names_by_one_host(
    antipode_mongodb: MongoDBTopology,
) -> None:
    """What it reads at a secondary that is behind waits."""
    pymongo: Any = pytest.importorskip("pymongo")
    host = f"{antipode_mongodb.primary.host}:{antipode_mongodb.primary.port}"
    antipode.configure(barriers="auto", auto_timeout=20, on_stale="raise")
    antipode.setup(datastores=f"posts=mongodb://{host}")
    secondary = pymongo.ReadPreference.SECONDARY
    antipode_mongodb.set_lag(300)
    try:
        with pymongo.MongoClient(antipode_mongodb.url()) as client:
            near = client.get_database("app", read_preference=secondary)
            for number in range(3):
                with antipode.scope():
                    client["app"]["by_rule"].insert_one({"_id": number})
                    assert near["by_rule"].find_one({"_id": number})
            client["app"]["by_rule"].drop()
    finally:
        antipode_mongodb.set_lag(0)
