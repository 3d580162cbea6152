"""`antipode doctor` over processes whose rules are of other stores than Redis."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

import antipode
from tests.integration._ports import refused_port
from tests.integration.doctor._examined import told

if TYPE_CHECKING:
    from antipode_testing import (
        MongoDBTopology,
        MySQLTopology,
        PostgreSQLTopology,
        RabbitMQTopology,
    )

pytestmark = pytest.mark.slow
USER: dict[str, Any] = {"user": "app", "password": "app", "database": "app"}


@pytest.fixture(autouse=True)
def _no_variables_of_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Doctor names each variable that is no setting."""
    for name in ("ANTIPODE_REQUIRE_AGENTS", "ANTIPODE_KEEP_GOING"):
        monkeypatch.delenv(name, raising=False)


def of_stores() -> list[tuple[str, str, str]]:
    """What is said of rules and datastores that is not in order, or not known."""
    about = ("setup", "settings", "rules", "datastores", "shop", "store")
    return [each for each in told() if each[0] in about]  # Not the addresses of the topologies.


def one_of(found: list[tuple[str, str, str]]) -> tuple[str, str, str]:
    """The only one that is said."""
    assert len(found) == 1, found
    return found[0]


def of_both(topology: Any, scheme: str, database: str = "") -> str:
    """Rules for the primary and its replica."""
    near = f"{topology.replica}{database}?reads_from=replica"
    return f"shop={scheme}://{topology.primary}{database}, shop={scheme}://{near}"


@pytest.mark.store("mysql")
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_connection_of_mysqlclient(antipode_mysql: MySQLTopology, *, before: bool) -> None:
    """Made before setup() or after it, it is the datastore's, and nothing is to be corrected."""
    mysqlclient: Any = pytest.importorskip("MySQLdb")
    address, rules = antipode_mysql.primary, of_both(antipode_mysql, "mysql")
    if not before:
        antipode.setup(datastores=rules)
    with closing(mysqlclient.connect(host=address.host, port=address.port, **USER)):
        antipode.setup(datastores=rules)
        assert not of_stores()


@pytest.mark.store("mysql")
def test_connections_of_pymysql(antipode_mysql: MySQLTopology) -> None:
    """To both servers."""
    pymysql: Any = pytest.importorskip("pymysql")
    antipode.setup(datastores=of_both(antipode_mysql, "mysql"))
    near, far = antipode_mysql.replica, antipode_mysql.primary
    with (
        pymysql.connect(host=far.host, port=far.port, **USER),
        pymysql.connect(host=near.host, port=near.port, **USER),
    ):
        assert not of_stores()


@pytest.mark.store("mysql")
def test_engines_that_have_no_connection_yet(antipode_mysql: MySQLTopology) -> None:
    """They are their datastore's as they are made."""
    sqlalchemy: Any = pytest.importorskip("sqlalchemy")
    antipode.setup(datastores=of_both(antipode_mysql, "mysql"))
    servers = (antipode_mysql.primary, antipode_mysql.replica)
    engines = [sqlalchemy.create_engine(antipode_mysql.url(each)) for each in servers]
    assert not of_stores()
    for each in engines:
        each.dispose()


@pytest.mark.store("mysql")
def test_one_server_of_mysql_by_two_names_of_its_host(antipode_mysql: MySQLTopology) -> None:
    """One problem, with the rule to correct; each has the log of the other, once it is written."""
    pymysql: Any = pytest.importorskip("pymysql")
    port, host = antipode_mysql.primary.port, socket.gethostname()
    with pymysql.connect(host=host, port=port, **USER) as plain, plain.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS doubled (id INT)")
    antipode.setup(datastores=f"shop=mysql://localhost:{port}, store=mysql://{host}:{port}")
    with (
        pymysql.connect(host="127.0.0.1", port=port, **USER),
        pymysql.connect(host=host, port=port, **USER),
    ):
        _, verdict, said = one_of(of_stores())
    assert verdict == "problem"
    assert "one store has two names: give the rules of both addresses one name" in said


@pytest.mark.store("mongodb")
def test_a_client_of_mongodb(antipode_mongodb: MongoDBTopology) -> None:
    """By a rule for a host of its set, without a database: nothing is to be corrected."""
    pymongo: Any = pytest.importorskip("pymongo")
    url = antipode_mongodb.url()
    host = urlsplit(url).netloc.rpartition("@")[2].partition(",")[0]
    antipode.setup(datastores=f"shop=mongodb://{host}")
    with pymongo.MongoClient(url):
        assert not of_stores()


@pytest.mark.store("mongodb")
def test_a_client_of_mongodb_at_another_port(antipode_mongodb: MongoDBTopology) -> None:
    """Where nothing is at the rule's, it is a problem, and the client is named."""
    pymongo: Any = pytest.importorskip("pymongo")
    with refused_port() as wrong:
        antipode.setup(datastores=f"shop=mongodb://localhost:{wrong}")
        with pymongo.MongoClient(antipode_mongodb.url()):
            subject, verdict, said = one_of(of_stores())
    assert (subject, verdict) == ("rules", "problem")
    assert "no client is there, and mongodb at localhost:" in said
    assert "correct the address in the rule" in said


@pytest.mark.store("postgresql")
def test_connections_of_postgresql(antipode_postgresql: PostgreSQLTopology) -> None:
    """Of psycopg and asyncpg, to both servers."""
    psycopg, asyncpg = (pytest.importorskip(each) for each in ("psycopg", "asyncpg"))
    antipode.setup(datastores=of_both(antipode_postgresql, "postgresql", "/app"))

    async def connect() -> list[tuple[str, str, str]]:
        near = await asyncpg.connect(antipode_postgresql.url(antipode_postgresql.replica))
        try:
            with psycopg.connect(antipode_postgresql.url()):
                return await asyncio.to_thread(of_stores)
        finally:
            await near.close()

    assert not asyncio.run(connect())


@pytest.mark.store("postgresql")
def test_two_databases_of_one_standby(antipode_postgresql: PostgreSQLTopology) -> None:
    """They are no two replicas: what a barrier cannot know is in which one promises are."""
    psycopg: Any = pytest.importorskip("psycopg")
    antipode.setup(datastores=of_both(antipode_postgresql, "postgresql"))
    url = antipode_postgresql.url(antipode_postgresql.replica)
    with psycopg.connect(url), psycopg.connect(url, dbname="postgres"):
        subject, verdict, said = one_of(of_stores())
    assert (subject, verdict) == ("shop", "problem")
    assert "2 databases of one server are registered as 'shop'" in said
    assert "use at='read', or give each its own datastore name" in said


@pytest.mark.store("rabbitmq")
def test_a_channel_without_receipts(antipode_rabbitmq: RabbitMQTopology) -> None:
    """That nobody can wait for its messages is said, and is no problem."""
    pika: Any = pytest.importorskip("pika")
    antipode.setup(datastores=f"shop=amqp://{antipode_rabbitmq.primary}")
    with pika.BlockingConnection(pika.URLParameters(antipode_rabbitmq.url())) as connection:
        channel = connection.channel()
        _, verdict, said = one_of(of_stores())
        channel.close()
    assert verdict == "cannot tell"
    assert "its writes cannot be waited for" in said


def test_a_rule_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database in a rule for MongoDB matches nothing: a problem, with what to take off."""
    monkeypatch.setenv("ANTIPODE_DATASTORES", "posts=mongodb://docs/app")
    subject, verdict, said = one_of(of_stores())
    assert (subject, verdict) == ("settings", "problem")
    assert "take '/app' off its URL" in said
