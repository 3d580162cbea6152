"""Rules in a process that has no use for them: nothing is connected, guessed or told twice."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode import Lineage, WriteId
from antipode._runtime.ruled import unfollow
from antipode._setup.targets import STORES

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Of every store, with a password, at names that no resolver knows.
RULES = (
    "cache=redis://u:secret@cache.invalid/0, cache=redis://replica.invalid?reads_from=replica, "
    "jobs=unix:///run/secret-free.sock, shop=mysql://u:secret@[fd00::7]/shop, "
    "orders=postgresql:///orders?host=/run/pg, docs=mongodb://u:secret@a.invalid,b.invalid, "
    "mail=amqp://u:secret@broker.invalid/%2F?receipts=true, news=stomp://broker.invalid, "
    "items=dynamodb://eu-west-1, media=s3://eu-west-1, pings=sns://eu-west-1"
)
WATCHED = """
import socket, sys
found, own = [], socket.gethostname()
sys.addaudithook(
    lambda event, details: found.append((event, details))
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname") else None
)
import antipode
antipode.setup()
for name in ("redis", "pymysql", "psycopg", "pymongo", "pika", "stomp", "botocore.session"):
    try:
        __import__(name)
    except ImportError:
        pass
print([each for each in found if each[1][0] != own])  # Of which clients make their names.
"""


@pytest.fixture
def ended() -> Iterator[None]:
    yield
    antipode.teardown()
    for each in STORES:
        unfollow(each.name)


def test_nothing_is_connected_or_looked_up() -> None:
    """Not at the import of the library or of a client, nor by ``setup()``; no secret is printed."""
    ran = subprocess.run(
        [sys.executable, "-c", WATCHED],
        env={"ANTIPODE_DATASTORES": RULES, "ANTIPODE_LOG": "debug"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "[]\n"
    assert "secret@" not in ran.stderr
    assert ":secret" not in ran.stderr


@pytest.mark.parametrize(
    ("store", "packages", "url"),
    [
        ("redis", ["redis"], "redis://h"),
        ("mysql", ["pymysql", "aiomysql", "MySQLdb"], "mysql://h"),
        ("mongodb", ["pymongo"], "mongodb://h"),
        ("postgresql", ["psycopg", "asyncpg", "psycopg2"], "postgresql://h"),
        ("rabbitmq", ["pika", "aio_pika"], "amqp://h?receipts=true"),
        ("activemq", ["stomp"], "stomp://h?receipts=true"),
        ("dynamodb", ["botocore"], "dynamodb://eu-west-1"),
        ("s3", ["botocore"], "s3://eu-west-1"),
    ],
)
@pytest.mark.slow
@pytest.mark.usefixtures("ended")
def test_a_rule_for_a_store_whose_package_is_missing(
    store: str,
    packages: list[str],
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One line says so, as such a process may be right; a barrier says what to install."""
    from antipode._setup import targets

    real = targets.is_installed
    monkeypatch.setattr(targets, "is_installed", lambda name: name not in packages and real(name))
    caplog.set_level("INFO", logger="antipode")
    antipode.setup(datastores=f"lacking={url}")
    (line,) = [
        each.getMessage() for each in caplog.records if "setup() covers" in each.getMessage()
    ]
    assert f"named by rules, and no client installed: {store}" in line
    assert not [each for each in caplog.records if each.levelname == "WARNING"]
    lineage = Lineage([WriteId("lacking", "log", 1)])
    with pytest.raises(antipode.UnknownDatastore) as raised:
        antipode.barrier(lineage, timeout=1, only="lacking")
    assert f'pip install "antipode-xcy[{store}]"' in str(raised.value)
