"""Post-notification with a writer in Python and a reader in Java: what both tiers run."""

from __future__ import annotations

import os
import re
import subprocess
import uuid
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pymysql
import pytest

import antipode
from antipode.integrations.httpx import instrument_client
from antipode_shims import mysql
from antipode_testing import wait_until
from tests.conformance._agents import REQUIRE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import MySQLTopology

BUILT = Path(__file__).resolve().parents[2] / "java" / "antipode-reader" / "target"
STARTED = re.compile(r"Tomcat started on port (\d+)")
START_S = 90.0
TIMEOUT_S = 30.0
OK, MISSING = 200, 404
TABLE = "CREATE TABLE IF NOT EXISTS posts (id VARCHAR(64) PRIMARY KEY, body VARCHAR(64) NOT NULL)"


def _class_path() -> str:
    listed = BUILT / "class-path"
    if not listed.exists():
        missing = "the reader in Java is not built: `make java`"
        if "java" in os.environ.get(REQUIRE_VARIABLE, "").split(","):
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)
    return f"{BUILT / 'classes'}:{listed.read_text()}"


def _address(log: Path) -> str:
    """Where it listens; empty until it says so."""
    found = STARTED.search(log.read_text())
    return f"http://127.0.0.1:{found[1]}" if found else ""


@contextmanager
def reader(posts: MySQLTopology, log: Path) -> Iterator[str]:
    """The service, at the replica; it has the starter and two properties. Yields its address."""
    replica = posts.replica
    url = f"jdbc:mysql://{replica.host}:{replica.port}/{posts.database}"
    program = ("java", "-XX:TieredStopAtLevel=1", "-cp", _class_path(), "io.antipode.reader.Reader")
    settings = (
        "--server.port=0",
        f"--spring.datasource.url={url}",
        "--antipode.mysql.pools.data-source.datastore=posts",
        "--antipode.mysql.pools.data-source.reads-from=replica",
    )
    account = {
        "SPRING_DATASOURCE_USERNAME": posts.user,
        "SPRING_DATASOURCE_PASSWORD": posts.password,
    }
    with (
        log.open("w") as said,
        subprocess.Popen(
            [*program, *settings], env={**os.environ, **account}, stdout=said, stderr=said
        ) as process,
    ):
        try:
            wait_until(
                lambda: bool(_address(log)) or process.poll() is not None,
                what="the start of the reader",
                timeout_s=START_S,
            )
            assert process.poll() is None, log.read_text()
            yield _address(log)
        finally:
            process.terminate()


def _writer(posts: MySQLTopology, stack: ExitStack) -> Any:
    """An instrumented connection to the primary."""
    connection = pymysql.connect(
        host=posts.primary.host,
        port=posts.primary.port,
        user=posts.user,
        password=posts.password,
        database=posts.database,
        autocommit=True,
    )
    stack.enter_context(closing(connection))
    mysql.instrument_connection(connection, datastore="posts")
    stack.callback(mysql.uninstrument_connection, connection)
    with antipode.scope():
        connection.cursor().execute(TABLE)
    return connection


def violations(posts: MySQLTopology, rounds: int, folder: Path) -> tuple[int, int]:
    """In how many of *rounds* the post is missing without the barrier, and with it.

    What replicates the post is held until the reader was asked, and read without a barrier.
    """
    with ExitStack() as stack:
        connection = _writer(posts, stack)
        address = stack.enter_context(reader(posts, folder / "reader.log"))
        client = stack.enter_context(httpx.Client(base_url=address, timeout=TIMEOUT_S))
        instrument_client(client)
        run = uuid.uuid4().hex
        without = after = 0
        for number in range(rounds):
            posts.pause()
            with antipode.scope():
                statement = "INSERT INTO posts (id, body) VALUES (%s, 'hello')"
                connection.cursor().execute(statement, (post := f"{run}-{number}",))
                early = client.get(f"/early/{post}").status_code
                posts.resume()
                late = client.get(f"/posts/{post}").status_code
            assert {early, late} <= {OK, MISSING}
            without += early == MISSING
            after += late == MISSING
    return without, after
