"""Each extra alone, in an empty environment, as a user installs it: what it brings is enough.

A program of each extra, in the folder ``programs``, does what its guide shows first.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest

from tests.integration.mysql._servers import prepare
from tools.clients import clients_of

if TYPE_CHECKING:
    from antipode_testing import (
        ActiveMQTopology,
        DynamoDBTopology,
        MongoDBTopology,
        MySQLTopology,
        PostgreSQLTopology,
        RabbitMQTopology,
        RedisTopology,
        S3Topology,
        SNSTopology,
    )

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).with_name("programs")
_INSTALL_S = 240
_RUN_S = 60


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the tree."""
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (made,) = folder.glob("*.whl")
    return made


def pip(*arguments: str, python: str = sys.executable) -> None:
    """Run pip."""
    command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_S, check=False)
    assert done.returncode == 0, done.stderr


def environment(folder: Path, *requirements: str) -> str:
    """The Python of an environment that has these and nothing else."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    python = str(folder / "bin" / "python")
    pip("install", *requirements, python=python)
    return python


def works(python: str, extra: str, *arguments: str) -> None:
    """The program of that extra ends well."""
    command = [python, str(PROGRAMS / f"use_{extra}.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_RUN_S, check=False)
    assert done.returncode == 0, done.stderr


class Extras:
    """What holds of the newest releases as of the oldest."""

    oldest: ClassVar[bool]

    def alone(self, wheel: Path, extra: str, folder: Path) -> str:
        """The Python of an environment that has this extra and nothing else."""
        clients = clients_of(extra) if self.oldest else []
        pins = [f"{client.name}=={client.oldest}" for client in clients]
        return environment(folder, f"{wheel}[{extra}]", *pins)

    @pytest.mark.store("redis")
    def test_redis(self, wheel: Path, antipode_redis: RedisTopology, tmp_path: Path) -> None:
        """Table 2 and instrumented clients, with redis-py alone."""
        python = self.alone(wheel, "redis", tmp_path)
        works(python, "redis", antipode_redis.url())

    @pytest.mark.store("mysql")
    def test_mysql(self, wheel: Path, antipode_mysql: MySQLTopology, tmp_path: Path) -> None:
        """Table 2, an instrumented connection and an engine, without greenlet.

        The asyncio shim says what to install for it.
        """
        prepare(antipode_mysql)
        works(self.alone(wheel, "mysql", tmp_path), "mysql", antipode_mysql.url())

    @pytest.mark.store("mysql")
    def test_mysqlclient(self, wheel: Path, antipode_mysql: MySQLTopology, tmp_path: Path) -> None:
        """An instrumented connection, with mysqlclient alone."""
        pytest.importorskip("MySQLdb", reason="mysqlclient compiles where its headers are")
        python = self.alone(wheel, "mysqlclient", tmp_path)
        works(python, "mysqlclient", antipode_mysql.url())

    @pytest.mark.store("postgresql")
    def test_psycopg2(
        self, wheel: Path, antipode_postgresql: PostgreSQLTopology, tmp_path: Path
    ) -> None:
        """A pool of psycopg2's."""
        python = self.alone(wheel, "psycopg2", tmp_path)
        works(python, "psycopg2", antipode_postgresql.url())

    @pytest.mark.store("postgresql")
    def test_asyncpg(
        self, wheel: Path, antipode_postgresql: PostgreSQLTopology, tmp_path: Path
    ) -> None:
        """A pool of asyncpg's."""
        python = self.alone(wheel, "asyncpg", tmp_path)
        works(python, "asyncpg", antipode_postgresql.url())

    @pytest.mark.store("postgresql")
    def test_postgresql(
        self, wheel: Path, antipode_postgresql: PostgreSQLTopology, tmp_path: Path
    ) -> None:
        """An instrumented connection of each API and an engine, with psycopg 3 alone."""
        python = self.alone(wheel, "postgresql", tmp_path)
        works(python, "postgresql", antipode_postgresql.url())

    @pytest.mark.store("mongodb")
    def test_mongodb(self, wheel: Path, antipode_mongodb: MongoDBTopology, tmp_path: Path) -> None:
        """Table 2 and instrumented clients, with PyMongo alone."""
        python = self.alone(wheel, "mongodb", tmp_path)
        works(python, "mongodb", f"mongodb://{antipode_mongodb.primary}/?directConnection=true")

    @pytest.mark.store("rabbitmq")
    def test_rabbitmq(
        self, wheel: Path, antipode_rabbitmq: RabbitMQTopology, tmp_path: Path
    ) -> None:
        """Table 2, channels, consumers and receipts, with pika and aio-pika alone."""
        python = self.alone(wheel, "rabbitmq", tmp_path)
        works(python, "rabbitmq", antipode_rabbitmq.url(), f"extras.{uuid.uuid4().hex}")

    @pytest.mark.store("activemq")
    def test_activemq(
        self, wheel: Path, antipode_activemq: ActiveMQTopology, tmp_path: Path
    ) -> None:
        """Table 2 with receipts, and an instrumented connection, with stomp.py alone."""
        python = self.alone(wheel, "activemq", tmp_path)
        works(python, "activemq", antipode_activemq.url(), f"VirtualTopic.{uuid.uuid4().hex}")

    @pytest.mark.store("dynamodb")
    @pytest.mark.parametrize("extra", ["dynamodb", "aiobotocore"])
    def test_dynamodb(
        self, wheel: Path, extra: str, antipode_dynamodb: DynamoDBTopology, tmp_path: Path
    ) -> None:
        """Table 2 and instrumented clients, with each client library alone."""
        python = self.alone(wheel, extra, tmp_path)
        works(python, extra, antipode_dynamodb.url())

    @pytest.mark.store("s3")
    def test_s3(self, wheel: Path, antipode_s3: S3Topology, tmp_path: Path) -> None:
        """Table 2, an instrumented client and a transfer, with boto3 alone."""
        works(self.alone(wheel, "s3", tmp_path), "s3", antipode_s3.url())

    @pytest.mark.store("sns")
    def test_sns(self, wheel: Path, antipode_sns: SNSTopology, tmp_path: Path) -> None:
        """Table 2 and instrumented clients, with boto3 alone."""
        topic = antipode_sns.create_topic(f"extras-{uuid.uuid4().hex}")
        python = self.alone(wheel, "sns", tmp_path)
        works(python, "sns", *antipode_sns.urls, *topic)

    @pytest.mark.store("redis")
    @pytest.mark.parametrize("extra", ["rq"])
    def test_queues(
        self, wheel: Path, extra: str, antipode_redis: RedisTopology, tmp_path: Path
    ) -> None:
        """A job in a worker, with its queue's library alone."""
        host, port = antipode_redis.primary
        works(self.alone(wheel, extra, tmp_path), extra, host, str(port))

    @pytest.mark.parametrize(
        "extra",
        [
            *("requests", "httpx", "aiohttp", "grpc", "celery", "dramatiq", "huey", "aiocache"),
            *("aiodataloader", "strawberry", "session"),
        ],
    )
    def test_integrations(self, wheel: Path, extra: str, tmp_path: Path) -> None:
        """Each integration needs its framework alone."""
        works(self.alone(wheel, extra, tmp_path), extra)
