"""Each extra alone, in an empty environment, as a user installs it: what it brings is enough."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.mysql._servers import prepare

if TYPE_CHECKING:
    from antipode.testing import (
        MongoDBTopology,
        MySQLTopology,
        RabbitMQTopology,
        RedisTopology,
    )

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[3]
#: What the README has its readers install.
ALL = "redis,mysql,mongodb,rabbitmq"
WRITES = """
import sys
import antipode
from antipode_shims import {store}

with antipode.scope() as scope, {shim} as shim:
    shim.write("extras", {value})
    assert len(scope.lineage) == 1, scope.lineage
    assert not scope.lineage.incomplete, scope.lineage
print("written")
"""
REDIS = WRITES.format(store="redis", shim='redis.shim("posts", sys.argv[1])', value='b"1"')
MYSQL = WRITES.format(store="mysql", shim='mysql.shim("posts", sys.argv[1])', value='"1"')
MONGODB = WRITES.format(
    store="mongodb",
    shim='mongodb.shim("posts", sys.argv[1], database="app", collection="extras")',
    value="1",
)
RABBITMQ = """
import sys
import antipode
from antipode_shims import rabbitmq

with rabbitmq.shim("news", sys.argv[1]):
    pass
print("written")
"""
EMBEDDED = """
import antipode
from antipode_shims import embedded
print("written")
"""
INTEGRATION = "from antipode.integrations import {0} as ours; ours.instrument(); print('written')"
OPTIONAL = 'from antipode_shims.mysql import shim_async; shim_async("posts", "mysql+aiomysql://h")'


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
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr


def alone(wheel: Path, extra: str, folder: Path) -> str:
    """The Python of an environment that has this extra and nothing else."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    python = str(folder / "bin" / "python")
    pip("install", f"{wheel}[{extra}]", python=python)
    return python


def run(python: str, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program in that environment."""
    command = [python, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def writes(python: str, program: str, *arguments: str) -> None:
    """The program ends well."""
    done = run(python, program, *arguments)
    assert done.stdout == "written\n", done.stderr


@pytest.mark.store("redis")
def test_redis(wheel: Path, antipode_redis: RedisTopology, tmp_path: Path) -> None:
    """Table 2 writes with redis-py alone."""
    writes(alone(wheel, "redis", tmp_path), REDIS, antipode_redis.url())


@pytest.mark.store("mysql")
def test_mysql(wheel: Path, antipode_mysql: MySQLTopology, tmp_path: Path) -> None:
    """Table 2 writes without greenlet; the asyncio one says what to install for it."""
    prepare(antipode_mysql)
    python = alone(wheel, "mysql", tmp_path)
    writes(python, MYSQL, antipode_mysql.url())
    refused = run(python, OPTIONAL)
    assert "ConfigurationError" in refused.stderr
    assert "need greenlet: pip install" in refused.stderr


@pytest.mark.store("mongodb")
def test_mongodb(wheel: Path, antipode_mongodb: MongoDBTopology, tmp_path: Path) -> None:
    """Table 2 writes with PyMongo alone."""
    place = f"mongodb://{antipode_mongodb.primary}/?directConnection=true"
    writes(alone(wheel, "mongodb", tmp_path), MONGODB, place)


@pytest.mark.store("rabbitmq")
def test_rabbitmq(wheel: Path, antipode_rabbitmq: RabbitMQTopology, tmp_path: Path) -> None:
    """The shim opens with pika and aio-pika alone."""
    writes(alone(wheel, "rabbitmq", tmp_path), RABBITMQ, antipode_rabbitmq.url())


@pytest.mark.store("mysql")
@pytest.mark.store("redis")
def test_the_install_line_of_the_readme(
    wheel: Path, antipode_mysql: MySQLTopology, antipode_redis: RedisTopology, tmp_path: Path
) -> None:
    """All stores at once, as the README says, and two of them write."""
    assert f'pip install "antipode-xcy[{ALL}]"' in (ROOT / "README.md").read_text(encoding="utf-8")
    prepare(antipode_mysql)
    python = alone(wheel, ALL, tmp_path)
    writes(python, MYSQL, antipode_mysql.url())
    writes(python, REDIS, antipode_redis.url())


@pytest.mark.parametrize("extra", ["embedded", "requests", "httpx", "aiohttp", "grpc", "celery"])
def test_the_others(wheel: Path, extra: str, tmp_path: Path) -> None:
    """The embedded store needs nothing, each integration its framework alone."""
    program = EMBEDDED if extra == "embedded" else INTEGRATION.format(extra)
    writes(alone(wheel, extra, tmp_path), program)
