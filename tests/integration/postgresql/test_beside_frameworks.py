"""Lineages stored with rows by SQLAlchemy, by Django, and behind PgBouncer."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import antipode
from antipode import ConfigurationError, Lineage
from antipode.shim import encode
from antipode_shims import postgresql
from tests.integration.postgresql._beside import CAUSE, OTHER, make_table, texts
from tests.integration.postgresql._clients import DATASTORE
from tests.integration.postgresql.test_pgbouncer import pooled

if TYPE_CHECKING:
    from tests.integration.postgresql._clients import Clients

pytestmark = [pytest.mark.store("postgresql"), pytest.mark.slow]
BESIDE: dict[str, Any] = {"datastore": DATASTORE, "lineage": "beside", "tables": ["orders"]}


class Base(DeclarativeBase):
    """Of mapped classes."""


class Order(Base):
    """A row of orders."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[str]


@pytest.fixture
def orders(clients: Clients, capsys: pytest.CaptureFixture[str]) -> Clients:
    """With a migrated table of orders."""
    make_table(clients, capsys, "id serial PRIMARY KEY, body text")
    clients.topology.execute(f"GRANT ALL ON SEQUENCE orders_id_seq TO {clients.topology.user}")
    clients.topology.wait_replicated()
    return clients


def test_the_orm(orders: Clients) -> None:
    """Flushes store, loads find: of one row, of many, of server-side cursors, of one deleted."""
    engine = sa.create_engine(orders.topology.url(driver="postgresql+psycopg"))
    postgresql.instrument_engine(engine, **BESIDE)
    try:
        with antipode.scope(Lineage([CAUSE])), Session(engine) as session:
            session.add_all([Order(body="x") for _ in range(3)])
            session.commit()
        with antipode.scope(Lineage([OTHER])), Session(engine) as session:
            session.get_one(Order, 2).body = "y"
            session.commit()
        for load, causes in (
            (lambda session: session.get_one(Order, 1), {CAUSE}),
            (lambda session: session.get_one(Order, 2), {CAUSE, OTHER}),
            (lambda session: session.scalars(sa.select(Order)).all(), {CAUSE, OTHER}),
            (
                lambda session: list(
                    session.scalars(sa.select(Order).execution_options(yield_per=1))
                ),
                {CAUSE, OTHER},
            ),
        ):
            with antipode.scope() as scope, Session(engine) as session:
                assert load(session)
                assert {each for each in scope.lineage if each.datastore != DATASTORE} == causes
        with antipode.scope(Lineage([OTHER])), Session(engine) as session:
            session.delete(session.get_one(Order, 1))
            session.commit()
        with antipode.scope() as scope, Session(engine) as session:
            assert session.get(Order, 1) is None
            assert {CAUSE, OTHER} <= set(scope.lineage)
    finally:
        postgresql.uninstrument_engine(engine)
        engine.dispose()


async def test_an_asyncio_engine(orders: Clients) -> None:
    """The same."""
    engine = create_async_engine(orders.topology.url(driver="postgresql+psycopg_async"))
    postgresql.instrument_engine(engine, **BESIDE)
    try:
        with antipode.scope(Lineage([CAUSE])):
            async with engine.begin() as connection:
                await connection.execute(sa.insert(Order).values(id=1, body="x"))
        with antipode.scope() as scope:
            async with engine.connect() as connection:
                assert (await connection.execute(sa.select(Order))).one() == (1, "x")
            assert CAUSE in scope.lineage
    finally:
        postgresql.uninstrument_engine(engine)
        await engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg2", "asyncpg"])
def test_other_drivers_are_refused(orders: Clients, driver: str) -> None:
    """At once."""
    pytest.importorskip(driver)
    make = create_async_engine if driver == "asyncpg" else sa.create_engine
    engine = make(orders.topology.url(driver=f"postgresql+{driver}"))
    with pytest.raises(ConfigurationError, match="psycopg 3"):
        postgresql.instrument_engine(engine, **BESIDE)


def test_behind_a_pooler_of_transactions(orders: Clients) -> None:
    """In a transaction all is as without it; outside of one a write is refused before it is sent.

    There the session's setting would be another client's.
    """
    topology, plain = orders.topology, orders.plain(autocommit=True)
    with pooled(topology, topology.primary, "transaction") as address:
        writer = orders.writer(address, **{k: v for k, v in BESIDE.items() if k != "datastore"})
        for key, cause in ((1, CAUSE), (2, OTHER)):
            with antipode.scope(Lineage([cause])):
                writer.execute("INSERT INTO orders VALUES (%s, 'x')", (key,))
                writer.commit()
            assert texts(plain, key) == [encode(Lineage([cause]))]
        with antipode.scope() as scope:
            writer.execute("SELECT * FROM orders WHERE id = 1").fetchall()
            writer.commit()
            assert CAUSE in scope.lineage
        writer.autocommit = True
        with pytest.raises(ConfigurationError, match="in a transaction"):
            writer.execute("INSERT INTO orders VALUES (3, 'x')")
        assert plain.execute("SELECT count(*) FROM orders").fetchone() == (2,)
        with antipode.scope(Lineage([CAUSE])), writer.transaction():
            writer.execute("INSERT INTO orders VALUES (4, 'x')")
        assert texts(plain, 4) == [encode(Lineage([CAUSE]))]
        strangers = [psycopg.connect(topology.url(address)) for _ in range(4)]
        for each in strangers:
            said = each.execute("SELECT current_setting('antipode.lineage', true)").fetchone()
            assert said in ((None,), ("",))
            each.close()
        orders.close()


#: Django's settings are made once in a process.
PROGRAM = """
import json
import sys

import django
from django.conf import settings

host, _, port = sys.argv[1].rpartition(":")
settings.configure(DATABASES={"default": {
    "ENGINE": "django.db.backends.postgresql", "NAME": "app", "USER": "app", "PASSWORD": "app",
    "HOST": host, "PORT": port, "OPTIONS": {"server_side_binding": sys.argv[2] == "bound"}}})
django.setup()

from django.db import models, transaction

import antipode
from antipode import Lineage, WriteId
from antipode_shims import postgresql

class Order(models.Model):
    body = models.TextField()

    class Meta:
        app_label = "shop"
        db_table = "orders"

postgresql.instrument_django(datastore="shop", lineage="beside", tables=["orders"])
cause, other = (WriteId("elsewhere", log, 7, written_hour=490_000) for log in ("a", "b"))
with antipode.scope(Lineage([cause])):
    Order.objects.create(id=1, body="x")
with antipode.scope(Lineage([other])), transaction.atomic():
    Order.objects.create(id=2, body="x")

def found(load):
    with antipode.scope() as scope:
        load()
        return sorted(each.key for each in scope.lineage if each.datastore == "elsewhere")

seen = {
    "get": found(lambda: Order.objects.get(id=1)),
    "all": found(lambda: list(Order.objects.all())),
    "iterator": found(lambda: list(Order.objects.iterator(chunk_size=1))),
}
with antipode.scope(Lineage([other])):
    Order.objects.get(id=1).delete()
seen["gone"] = found(lambda: Order.objects.filter(id=1).first())
print(json.dumps(seen))
"""


@pytest.mark.parametrize("binding", ["bound", "merged"])
def test_django(orders: Clients, binding: str) -> None:
    """Models: saved, loaded, iterated over, deleted."""
    pytest.importorskip("django")
    command = [sys.executable, "-c", PROGRAM, str(orders.topology.primary), binding]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "get": ["a"],
        "all": ["a", "b"],
        "iterator": ["a", "b"],
        "gone": ["a", "b"],
    }
