"""The clients that extras promise to work with, and which of them have a release that is untested.

``python -m tools.clients`` prints, of those that are installed beside it, each that has a newer
release: the tests of this environment did not run with it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: The extras that are for a client or a framework, and not for a tool of the project's own.
EXTRAS = (
    "redis",
    "rabbitmq",
    "mongodb",
    "mysql",
    "mysqlclient",
    "postgresql",
    "psycopg2",
    "asyncpg",
    "activemq",
    "dynamodb",
    "s3",
    "sns",
    "aiobotocore",
    "requests",
    "httpx",
    "aiohttp",
    "grpc",
    "celery",
    "dramatiq",
    "rq",
    "huey",
    "aiocache",
    "aiodataloader",
    "strawberry",
    "session",
)
_LIMIT_S = 300


@dataclass(frozen=True)
class Client:
    """A distribution that an extra installs, and the oldest release of it that is promised."""

    name: str
    oldest: str


def clients_of(extra: str) -> list[Client]:
    """What *extra* installs, as pyproject.toml says."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(rf"^{re.escape(extra)} = \[(.*?)\]$", text, re.MULTILINE)
    if found is None:
        message = f"error: pyproject.toml has no extra {extra} in one line"
        raise SystemExit(message)
    return [Client(*each) for each in re.findall(r'"([\w.-]+)>=([\w.]+)"', found.group(1))]


def installed(names: set[str]) -> dict[str, str]:
    """The releases of *names* that this environment has."""
    here = {_plain(each.name): each.version for each in distributions()}
    return {name: here[_plain(name)] for name in names if _plain(name) in here}


def newest(names: list[str]) -> dict[str, str]:
    """What pip would install in place of the releases that are here, where that is another one."""
    command = [sys.executable, "-m", "pip", "--quiet", "install", "--dry-run", "--no-deps"]
    said = subprocess.run(
        [*command, "--upgrade", "--report", "-", *names],
        check=True,
        stdout=subprocess.PIPE,
        timeout=_LIMIT_S,
        encoding="utf-8",
    ).stdout
    made = [each["metadata"] for each in json.loads(said)["install"]]
    return {_plain(each["name"]): each["version"] for each in made}


def _plain(name: str) -> str:
    """As distributions are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    """Print what is newer than what the tests of this environment ran with."""
    here = installed({client.name for extra in EXTRAS for client in clients_of(extra)})
    offered = newest(sorted(here))
    untested = [name for name in sorted(here, key=str.lower) if _plain(name) in offered]
    for name in untested:
        print(f"{name}: tested {here[name]}, released {offered[_plain(name)]}")
    print(f"{len(untested)} of {len(here)} clients have a newer release than was tested here")


if __name__ == "__main__":
    main()
