"""MySQL with its extra alone: Table 2, an instrumented connection, an engine of each kind."""

import asyncio
import sys
import uuid
from urllib.parse import urlsplit

import pymysql
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import antipode
from antipode_shims import mysql

URL = sys.argv[1]


class Base(DeclarativeBase):
    pass


class Post(Base):
    __tablename__ = "extras_posts"
    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(sa.String(32))


def table2() -> None:
    with antipode.scope() as scope, mysql.shim("posts", URL) as shim:
        shim.write("extras", b"1")
        antipode.barrier(timeout=5)
        assert shim.read("extras")[0] == b"1"
        assert not scope.lineage.incomplete


def connection() -> None:
    url = urlsplit(URL)
    plain = pymysql.connect(
        host=url.hostname,
        port=url.port,
        user=url.username,
        password=url.password or "",
        database=url.path.strip("/"),
        autocommit=True,
    )
    one = mysql.instrument_connection(plain, datastore="native")
    with antipode.scope() as scope, one.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS extras_native (id INT PRIMARY KEY)")
        cursor.execute("REPLACE INTO extras_native VALUES (1)")
        antipode.barrier(timeout=5, at="read")
        cursor.execute("SELECT id FROM extras_native")
        assert [*cursor.fetchall()] == [(1,)]
        assert scope.lineage
        assert not scope.lineage.incomplete
    mysql.uninstrument_connection(one)
    one.close()


def engine() -> None:
    made = sa.create_engine(URL)
    mysql.instrument_engine(made, datastore="orm")
    Base.metadata.create_all(made)
    with antipode.scope() as scope, Session(made) as session:
        text = uuid.uuid4().hex
        session.merge(Post(id=1, text=text))
        session.commit()
        antipode.barrier(timeout=5, at="read")
        assert session.get(Post, 1).text == text
        assert scope.lineage
        assert not scope.lineage.incomplete
    mysql.uninstrument_engine(made)
    made.dispose()


async def async_engine() -> None:
    made = create_async_engine(URL.replace("+pymysql", "+aiomysql"))
    mysql.instrument_engine(made, datastore="orm")
    with antipode.scope() as scope:
        async with AsyncSession(made) as session:
            text = uuid.uuid4().hex
            await session.merge(Post(id=1, text=text))
            await session.commit()
            await antipode.barrier_async(timeout=5, at="read")
            assert (await session.get(Post, 1)).text == text
        assert scope.lineage
        assert not scope.lineage.incomplete
    mysql.uninstrument_engine(made)
    await made.dispose()


table2()
connection()
engine()
asyncio.run(async_engine())
