"""Databases with a table of calls and one of charges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import sqlalchemy as sa

from antipode import calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: The drivers, by kind of server.
THREADS = {
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}
ASYNCIO = {
    "postgresql": "postgresql+asyncpg",
    "mysql": "mysql+aiomysql",
    "mariadb": "mysql+aiomysql",
}
STORES = [pytest.param(name, marks=pytest.mark.store(name)) for name in THREADS]


class Database(NamedTuple):
    """A primary with the tables.

    Attributes:
        store: which kind of server.
        topology: of it.
        engine: of psycopg or PyMySQL.
    """

    store: str
    topology: Any
    engine: sa.Engine

    def url(self, *, asyncio: bool = False, address: Any = None) -> str:
        """For another engine, at the primary or at a proxy of it."""
        driver = (ASYNCIO if asyncio else THREADS)[self.store]
        url: str = self.topology.url(address, driver=driver)
        return url

    def charges(self) -> list[int]:
        """The amounts that were charged, in order."""
        with self.engine.connect() as connection:
            rows = connection.execute(sa.text("SELECT amount FROM charges ORDER BY id"))
            return [row.amount for row in rows]

    def names(self) -> int:
        """How many calls are known."""
        with self.engine.connect() as connection:
            counted: int = connection.scalar(sa.select(sa.func.count()).select_from(CALLS)) or 0
            return counted


METADATA = sa.MetaData()
CHARGES = sa.Table(
    "charges",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("amount", sa.Integer, nullable=False),
)
CALLS = calls.table(METADATA)


@pytest.fixture(params=STORES)
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """PostgreSQL, MySQL and MariaDB, with empty tables."""
    store = request.param
    topology = request.getfixturevalue(f"antipode_{store}")
    engine = sa.create_engine(topology.url(driver=THREADS[store]), pool_size=70)
    METADATA.create_all(engine)
    with engine.begin() as connection:
        for each in (CHARGES, CALLS):
            connection.execute(each.delete())
    yield Database(store, topology, engine)
    engine.dispose()


@pytest.fixture
def charge(database: Database) -> Callable[[int], Any]:
    """Charge a card once."""

    @calls.once(database.engine, name="charge")
    def charge(session: Any, amount: int) -> dict[str, int]:
        insert(session, amount)
        return {"charged": amount}

    return charge


INSERT = sa.text("INSERT INTO charges (amount) VALUES (:amount)")


def insert(session: Any, amount: int) -> None:
    """The effect."""
    session.execute(INSERT, {"amount": amount})
