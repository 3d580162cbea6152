"""Lineages beside rows through SQLAlchemy: Core, the ORM, and mapped classes that carry them."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine, insert, select, text, update
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import antipode
from antipode import ConfigurationError, Lineage
from antipode_shims import mysql

from ._clients import NOTES
from ._stored import CAUSE, IN_COLUMNS, OTHER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ._clients import Sql


#: The mixin maps the invisible column.
pytestmark = pytest.mark.parametrize("posts", IN_COLUMNS, indirect=True)


class Base(DeclarativeBase):
    """Of the tests' own."""


class Post(mysql.LineageMixin, Base):
    """One post."""

    __tablename__ = "posts"
    id: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[str]
    extra: Mapped[str]


@pytest.fixture
def engine(posts: Sql) -> Iterator[Callable[..., Any]]:
    """Make instrumented engines, to the primary by default; they are disposed of in the end."""
    made: list[Any] = []

    def build(address: Any = None, *, reads_from: str = "primary", **options: Any) -> Any:
        one = create_engine(posts.topology.url(address), **options)
        made.append(one)
        return mysql.instrument_engine(
            one,
            datastore=NOTES,
            reads_from=reads_from,  # type: ignore[arg-type]
            lineage="beside",
            tables=["posts"],
        )

    yield build
    for one in made:
        mysql.uninstrument_engine(one)
        one.dispose()


def test_the_orm_stores_and_finds_lineages(engine: Callable[..., Any]) -> None:
    """A flush stores the current lineage, a load adds that of the rows, a partial update merges."""
    one = engine()
    with antipode.scope(Lineage([CAUSE])), Session(one) as session, session.begin():
        session.add_all([Post(id=1, body="a", extra="b"), Post(id=2, body="a", extra="b")])
    with antipode.scope(Lineage([OTHER])), Session(one) as session, session.begin():
        session.get_one(Post, 1).extra = "c"
    with antipode.scope() as scope, Session(one) as session:
        assert session.scalars(select(Post).where(Post.id == 2)).one().body == "a"
        assert CAUSE in scope.lineage
        assert OTHER not in scope.lineage
        assert session.get_one(Post, 1).extra == "c"
        assert OTHER in scope.lineage
        assert not scope.lineage.incomplete


def test_core_and_text(engine: Callable[..., Any]) -> None:
    """Statements without the ORM are no exception, bulk ones included."""
    one = engine()
    with antipode.scope(Lineage([CAUSE])), one.begin() as connection:
        rows = [{"id": number, "body": "a", "extra": "b"} for number in (1, 2, 3)]
        connection.execute(insert(Post), rows)
    with antipode.scope(Lineage([OTHER])), one.begin() as connection:
        connection.execute(update(Post).values(body="z"))
    with antipode.scope() as scope, one.connect() as connection:
        found = connection.execute(text("SELECT * FROM posts WHERE id = 2"))
        assert list(found.keys()) == ["id", "body", "extra"]
        assert found.all() == [(2, "z", "b")]
        assert CAUSE in scope.lineage
        assert OTHER in scope.lineage


def test_an_instance_carries_its_lineage(engine: Callable[..., Any]) -> None:
    """Loaded, after a flush, and out of a cache in a later request."""
    one = engine()
    with antipode.scope(Lineage([CAUSE])), Session(one) as session:
        post = Post(id=1, body="a", extra="b")
        session.add(post)
        session.flush()
        assert CAUSE in post.lineage
        session.commit()
    with antipode.scope(), Session(one) as session:
        kept = pickle.dumps(session.get_one(Post, 1))
    with antipode.scope() as later:
        cached: Post = pickle.loads(kept)  # noqa: S301 - it is our own
        assert CAUSE not in later.lineage
        antipode.transfer(cached.lineage)
        assert CAUSE in later.lineage


def test_a_plain_row_has_an_empty_lineage(posts: Sql, engine: Callable[..., Any]) -> None:
    """Nobody knows what it depends on."""
    with posts.plain().cursor() as cursor:
        cursor.execute("INSERT INTO posts VALUES (1, 'a', 'b')")
    with antipode.scope(), Session(engine()) as session:
        assert session.get_one(Post, 1).lineage == Lineage()


def test_a_read_is_sampled_before_its_connection_is_another_ones(
    posts: Sql, engine: Callable[..., Any]
) -> None:
    """Given back to the pool, a connection has told what was read, and is not asked any more."""
    one = engine(pool_size=1, max_overflow=0)
    with antipode.scope(), one.begin() as connection:
        connection.execute(text("INSERT INTO posts VALUES (1, 'a', 'b')"))
    with antipode.scope() as scope:
        with one.connect() as connection:
            connection.execute(text("SELECT * FROM posts")).all()
        with one.connect() as connection:
            number = connection.exec_driver_sql("SELECT CONNECTION_ID()").scalar_one()
            posts.topology.execute(f"KILL {number}")
            assert [write.covering for write in scope.lineage] == [True]
            assert not scope.lineage.incomplete
            connection.invalidate()


def test_the_chain_is_waited_for(posts: Sql, engine: Callable[..., Any]) -> None:
    """A reader of a row waits at the replica for what the row's writer had read there before."""
    writer = engine()
    replica = engine(posts.topology.replica, reads_from="replica")
    posts.topology.set_lag(600)
    with antipode.scope(), Session(writer) as session, session.begin():
        session.add(Post(id=1, body="cause", extra=""))
    with antipode.scope(), Session(writer) as session, session.begin():
        assert session.get_one(Post, 1).body == "cause"
        session.add(Post(id=2, body="effect", extra=""))
    with antipode.scope():
        with Session(writer) as session:
            session.get_one(Post, 2)
        antipode.barrier(timeout=10, at="read")
        with Session(replica) as session:
            assert session.get_one(Post, 1).body == "cause"


def test_mysqlclient_is_refused(posts: Sql) -> None:
    """It shows no packets: said where the engine is instrumented, not at its first statement."""
    one = create_engine(posts.topology.url(driver="mysql+mysqldb"))
    with pytest.raises(ConfigurationError, match="needs PyMySQL or aiomysql"):
        mysql.instrument_engine(one, datastore=NOTES, lineage="beside", tables=["posts"])
    one.dispose()
