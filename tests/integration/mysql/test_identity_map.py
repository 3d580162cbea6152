"""SQLAlchemy's identity map, and raw connections: what the guide says of both."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import antipode
from antipode_shims import mysql

from .test_guide import GUIDE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

    from ._clients import Sql


class Base(DeclarativeBase):
    """Of the mapped class here."""


class Note(Base):
    """One note."""

    __tablename__ = "notes"
    id: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[str]


@pytest.fixture
def engine(sql: Sql) -> Iterator[Engine]:
    """An instrumented engine of the primary."""
    made = create_engine(sql.topology.url())
    mysql.instrument_engine(made, datastore="notes")
    yield made
    mysql.uninstrument_engine(made)
    made.dispose()


def test_an_object_that_the_session_holds_is_not_read_again(engine: Engine) -> None:
    """After a barrier it is as old as before; what the guide names reads it anew."""
    with antipode.scope(), Session(engine, expire_on_commit=False) as session:
        note = Note(id=1, body="old")  # The map is weak: the application holds it.
        session.add(note)
        session.commit()
        with engine.begin() as other:
            other.execute(text("UPDATE notes SET body = 'new'"))
        antipode.barrier(timeout=15)
        assert session.get(Note, 1) is note
        assert session.query(Note).one() is note
        assert note.body == "old"
        session.get(Note, 1, populate_existing=True)
        assert note.body == "new"
    guide = GUIDE.read_text(encoding="utf-8")
    assert "identity map" in guide
    assert "populate_existing=True" in guide


def test_raw_connections_of_an_instrumented_engine(engine: Engine) -> None:
    """They are covered, as is another engine on its pool."""
    again = create_engine(engine.url, pool=engine.pool)
    opened = (engine.raw_connection, engine.pool.connect, again.raw_connection)
    for number, opens in enumerate(opened, 10):
        with antipode.scope() as scope, contextlib.closing(opens()) as connection:
            connection.cursor().execute("INSERT INTO notes VALUES (%s, 'raw')", (number,))
            connection.commit()
            assert scope.lineage
            assert not scope.lineage.incomplete
