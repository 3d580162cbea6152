"""The page about stored lineages shows what lies in the stores, byte by byte."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bson
import psycopg
import pytest

import antipode
from antipode import Lineage, WriteId
from antipode.shim import stored_text
from antipode_shims import postgresql as postgresql_shims
from antipode_shims import redis as redis_shims
from tests.end_to_end._xcy_stores import opened, over
from tests.integration.mongodb import _clients as _mongodb_clients
from tests.integration.mongodb._stored import both
from tests.integration.mysql._clients import run
from tests.integration.mysql._stored import texts
from tests.integration.mysql.test_stored import beside
from tests.integration.postgresql import _beside as _postgresql_rows
from tests.integration.postgresql import _clients as _postgresql_clients
from tests.integration.redis import _clients as _redis_clients

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import MongoDBTopology, PostgreSQLTopology, RedisTopology
    from tests.integration.mysql._clients import Sql

PAGE = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "stored-lineage.md"
TEXT = PAGE.read_text(encoding="utf-8")
ORDER = WriteId("orders", "3e11fa47-71ca-11e1-9e33-c80aa9429562", 23, 498_000)
LATER = WriteId("orders", "3e11fa47-71ca-11e1-9e33-c80aa9429562", 24, 498_000)
LINEAGE = Lineage([ORDER])
STORED = stored_text(LINEAGE)


@pytest.fixture
def key() -> str:
    return f"page-{uuid.uuid4().hex}"


@pytest.fixture
def store(request: pytest.FixtureRequest, key: str) -> Iterator[Any]:
    """A store in which the page's first example was written under *key*."""
    with opened(request, {"posts": request.param[0]}) as (made,), antipode.scope():
        made.put(key, b"hello", LINEAGE)
        yield made


def block(section: str, number: int = 0, language: str = "text") -> str:
    """An example of one section."""
    (part,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", TEXT, flags=re.DOTALL | re.MULTILINE)
    found: str = re.findall(rf"```{language}\n(.*?)```", part, flags=re.DOTALL)[number]
    return found


def promised(store: str, face: str = "") -> int:
    """How many bytes the table says that the example takes."""
    named = {"Redis": 2, "MySQL": 3, "PostgreSQL": 4, "MongoDB": 5}[store]
    (row,) = re.findall(r"^\| bytes for the lineage above .*$", TEXT, flags=re.MULTILINE)
    return int(re.findall(rf"{face}(\d+)", row.split("|")[named + 1])[0])


def document(line: str) -> Any:
    """A document as the page spells it, without the value's own notation."""
    known = line.replace(', value: BinData(0, "aGVsbG8=")', "")
    return json.loads(re.sub(r"([{ ])(\w+):", r'\1"\2":', known))


def test_example_runs() -> None:
    """The example of the embedded store, run as it stands, prints what the page says."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", block("Embedded", language="python")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == block("Embedded")


def test_the_pieces_make_the_text() -> None:
    """The table of pieces spells the text, which is that of the order."""
    assert block("What is stored").strip() == STORED
    (part,) = re.findall(r"\| piece \|.*?\n\n", TEXT, flags=re.DOTALL)
    assert "".join(re.findall(r"^\| `(.*?)` \|", part, flags=re.MULTILINE)) == STORED
    assert stored_text(Lineage()) == "1"


def test_lengths_are_those_of_the_texts() -> None:
    """Each example of a log is a lineage of one write, as long as the page says."""
    rows = re.findall(r"^\| .*? \| `(1ao9c~.*?)` \| (\d+) \|$", TEXT, flags=re.MULTILINE)
    assert len(rows) == 9
    for text, length in rows:
        lineage = antipode.deserialize(text)
        assert [write.datastore for write in lineage] == ["orders"]
        assert stored_text(lineage) == text
        assert len(text) == int(length)


@pytest.mark.parametrize("store", over("redis"), indirect=True)
def test_redis(store: Any, key: str, antipode_redis: RedisTopology) -> None:
    """Companion keys of a string, of a hash, and of a deletion."""
    lines = block("Redis").splitlines() + block("Redis", 1).splitlines()
    string, other, gone = (line.split()[-1].encode() for line in lines)
    with _redis_clients.client(antipode_redis.primary) as plain:
        assert plain.get(f"ap:{key}") == string
        assert len(string) == promised("Redis")
        with _redis_clients.client(antipode_redis.primary) as client:
            redis_shims.instrument_client(
                client, datastore="posts", lineage="beside", keys=["page-*"]
            )
            for command, stored in (
                (("SET", key, "hello"), string),
                (("DEL", key), gone),
                (("HSET", key + "h", "a", 1), other),
            ):
                with antipode.scope(LINEAGE):
                    client.execute_command(*command)
                assert plain.get(f"ap:{command[1]}") == stored
            redis_shims.uninstrument_client(client)
        store.delete(key + "d", LINEAGE)
        assert plain.get(f"ap:{key}d") == gone


@pytest.mark.parametrize("store", over("mysql", "mariadb"), indirect=True)
def test_table_2_of_sql(store: Any, key: str) -> None:
    """A digest that the server makes, a counter, and the text."""
    (row,) = store.topology.execute("SELECT HEX(_ap) AS h FROM app.antipode_kv WHERE k = %s", key)
    shown = [line.split()[0] for line in block("MySQL and MariaDB").splitlines()[1:]]
    assert row["h"] == "".join(shown)
    assert len(row["h"]) == 2 * promised("MySQL", "explicit API: ")
    expression = block("MySQL and MariaDB").splitlines()[1].split(None, 1)[1]
    (digest,) = store.topology.execute(f"SELECT HEX({expression}) AS h")
    assert digest["h"] == shown[0]


def test_rows_of_your_own(posts: Sql) -> None:
    """An insert stores the text, an update merges by logs; how many fit is bounded."""
    connection = beside(posts)
    inserted, updated, joined = block("MySQL and MariaDB", 1).split()
    with antipode.scope(LINEAGE):
        run(connection, "INSERT INTO posts VALUES (1, 'a', 'b')")
    assert texts(posts) == [inserted]
    assert len(inserted) == promised("MySQL", "own rows: ")
    for cause, stored in ((LATER, updated), (WriteId("items", "0.1", 5, 498_000), joined)):
        with antipode.scope(Lineage([cause])):
            run(connection, "UPDATE posts SET body = 'c'")
        assert ",".join(texts(posts)) == stored
    with antipode.scope(LINEAGE):
        run(connection, "REPLACE INTO posts VALUES (1, 'a', 'b')")
    (most,) = re.findall(r"1,024 bytes, (\d+) logs of the length above", TEXT)
    held = 1
    for number in range(36):
        log = str(uuid.UUID(int=number))
        with antipode.scope(Lineage([WriteId("orders", log, 1, 498_000)])):
            run(connection, "UPDATE posts SET body = %s", str(number))
        if "1~isize.-" in texts(posts):
            break
        held += 1
        assert len(texts(posts)) == held
    assert held == int(most)


def test_rows_of_postgresql(
    antipode_postgresql: PostgreSQLTopology, capsys: pytest.CaptureFixture[str]
) -> None:
    """The side table of a row, after its insert and after an update."""
    question, *shown = block("PostgreSQL").splitlines()
    clients = _postgresql_clients.Clients(antipode_postgresql)
    with contextlib.closing(clients):
        _postgresql_rows.make_table(clients, capsys, "id int PRIMARY KEY, body text")
        writer, plain = clients.writer(**_postgresql_rows.BESIDE), clients.plain(autocommit=True)
        _postgresql_rows.write(writer, "INSERT INTO orders VALUES (1, 'a')", None, ORDER)
        rows = plain.execute(question).fetchall()
        assert rows == [tuple(shown[0].split())]
        assert len(rows[0][1]) == promised("PostgreSQL", "own rows: ")
        items = WriteId("items", "0.1", 5, 498_000)
        _postgresql_rows.write(writer, "UPDATE orders SET body = 'b'", None, items)
        assert plain.execute(question).fetchall() == [tuple(shown[1].split())]


def test_table_2_of_postgresql(antipode_postgresql: PostgreSQLTopology) -> None:
    """The text and the digest, in columns."""
    url = antipode_postgresql.url(driver="postgresql+psycopg")
    for statement in ("DROP TABLE IF EXISTS antipode_kv", *postgresql_shims.ddl()):
        antipode_postgresql.execute(statement)
    for table in ("antipode_kv", "antipode_tombstone"):
        antipode_postgresql.execute(f"ALTER TABLE {table} OWNER TO {antipode_postgresql.user}")
    question = "SELECT l, octet_length(d) FROM antipode_kv WHERE k = convert_to(%s, 'UTF8')"
    with contextlib.closing(postgresql_shims.shim("posts", url)) as posts:
        posts.write("post:1", b"hello", LINEAGE)
        with psycopg.connect(antipode_postgresql.url()) as plain:
            text, digest = plain.execute(question, ("post:1",)).fetchone() or ("", 0)
    assert text == STORED
    assert len(text) + digest == promised("PostgreSQL", "explicit API: ")


@pytest.mark.parametrize("store", over("mongodb"), indirect=True)
def test_mongodb(store: Any, key: str, antipode_mongodb: MongoDBTopology) -> None:
    """The field of Table 2, and that of an application's own documents."""
    with _mongodb_clients.plain_client(antipode_mongodb.primary) as plain:
        stored = plain.xcy.posts.find_one({"_id": key})
    shown = document(block("MongoDB"))
    assert stored == {**shown, "_id": key, "value": b"hello"}
    assert store.beside(key) == promised("MongoDB", "explicit API: ")
    shown = document(block("MongoDB", 1))
    with both(antipode_mongodb) as held:
        held.write(lambda: held.posts.insert_one({"_id": 1, "text": "hello"}), ORDER)
        stored = held.stored.find_one({"_id": 1})
    assert stored == shown
    without = {name: value for name, value in stored.items() if name != "_ap"}
    size = len(bson.encode(stored)) - len(bson.encode(without))
    assert size == promised("MongoDB", "own documents: ")
