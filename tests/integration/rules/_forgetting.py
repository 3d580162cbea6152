"""Three services of a shop, in a folder and processes of their own, with a line forgotten."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from antipode_testing import TopologyTimeout, wait_until
from tests.integration._processes import environment
from tests.integration._warned import note_warnings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from antipode_testing import PostgreSQLTopology, RabbitMQTopology, RedisTopology

SHOP = Path(__file__).parent / "_shop"
SERVICES = ("api", "worker", "web")
READY = {"api": "Uvicorn running on", "worker": " ready.", "web": "Running on"}


@dataclass(frozen=True)
class Servers:
    """The stores of the shop."""

    sql: PostgreSQLTopology
    redis: RedisTopology
    broker: RabbitMQTopology

    @property
    def places(self) -> dict[str, str]:
        """What stands in rules for each server, as warnings spell it."""
        return {
            "PRIMARY": f"postgresql://localhost:{self.sql.primary.port}/app",
            "STANDBY": f"postgresql://localhost:{self.sql.replica.port}/app",
            "REDIS": f"redis://localhost:{self.redis.primary.port}/0",
            "REDIS_REPLICA": f"redis://localhost:{self.redis.replica.port}/0",
        }

    def variables(self) -> dict[str, str]:
        """What the services are told of them."""
        sql, near = self.sql, self.sql.replica
        return {
            "PRIMARY": sql.url(),
            "STANDBY": sql.url(near),
            "PRIMARY_SQLALCHEMY": sql.url(driver="postgresql+psycopg"),
            "STANDBY_SQLALCHEMY": sql.url(near, driver="postgresql+psycopg"),
            "REDIS_PRIMARY": self.redis.url(),
            "REDIS_REPLICA": self.redis.url(self.redis.replica),
            "BROKER": self.broker.url(),
        }


#: The entries of ``ANTIPODE_DATASTORES``, by what may be forgotten.
RULES = {
    "writer": "shop={PRIMARY}",
    "reader": "shop={STANDBY}?reads_from=replica",
    "count": "cache={REDIS}",
    "near count": "cache={REDIS_REPLICA}?reads_from=replica",
}


@dataclass
class Shop:
    """The services, as they are deployed.

    Attributes:
        folder: with their code, and what they write.
        rules: of each service, by the keys of :data:`RULES`.
        variables: of each service besides.
        running: by service, while they serve.
    """

    folder: Path
    servers: Servers
    rules: dict[str, dict[str, str]] = field(default_factory=dict)
    variables: dict[str, dict[str, str]] = field(default_factory=dict)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in SERVICES:
            code = (SHOP / f"{name}.py").read_text(encoding="utf-8")
            (self.folder / f"{name}.py").write_text(code, encoding="utf-8")
            self.rules[name] = dict(RULES)
            self.variables[name] = self.servers.variables()
        self._warnings = self.folder / "warnings"
        note_warnings(self.folder, self._warnings)
        self._ports = {name: _free_port() for name in ("api", "web")}

    def edit(self, service: str, line: str, by: str = "") -> None:
        """Write *by* in place of a *line* of the code of *service*."""
        path = self.folder / f"{service}.py"
        code = path.read_text(encoding="utf-8")
        assert code.count(line) == 1, f"{service}.py has no line {line!r}"
        path.write_text(code.replace(line, by), encoding="utf-8")

    def _environment(self, service: str, settings: Mapping[str, str]) -> dict[str, str]:
        rules = ", ".join(self.rules[service].values()).format(**self.servers.places)
        own = {
            "ANTIPODE_DATASTORES": rules,
            "ANTIPODE_BARRIERS": "auto",
            "OTEL_SERVICE_NAME": service,
            "DONE": str(self.folder / "done"),
            "WEB": f"http://localhost:{self._ports['web']}/invoices",
            "PYTHONUNBUFFERED": "1",
            **self.variables[service],
            **settings,
        }
        found = environment(own)
        found["PYTHONPATH"] = os.pathsep.join([str(self.folder), found["PYTHONPATH"]])
        return found

    def _command(self, service: str) -> list[str]:
        port = str(self._ports.get(service))
        return [
            sys.executable,
            "-m",
            *{
                "api": ["uvicorn", "api:app", "--port", port],
                "worker": ["celery", "-A", "worker", "worker", "-P", "solo", "-l", "info"],
                "web": ["flask", "--app", "web", "run", "--port", port],
            }[service],
        ]

    @contextlib.contextmanager
    def serving(self, **settings: str) -> Iterator[None]:
        """Serve, with *settings*; the logs are whole once it ends."""
        for name in SERVICES:
            with (self.folder / f"{name}.log").open("wb") as log:
                self.running[name] = subprocess.Popen(
                    self._command(name),
                    env=self._environment(name, settings),
                    cwd=self.folder,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
        try:
            for name, said in READY.items():
                wait_until(partial(self._says, name, said), what=name, timeout_s=90)
            yield
        finally:
            for process in self.running.values():
                process.terminate()
            for process in self.running.values():
                process.wait(60)

    def _says(self, name: str, said: str) -> bool:
        assert self.running[name].poll() is None, self.log(name)
        return said in self.log(name)

    def log(self, service: str) -> str:
        """What a service wrote."""
        return (self.folder / f"{service}.log").read_text()

    def order(self, times: int = 2) -> None:
        """Order, and wait until it was invoiced."""
        done = self.folder / "done"
        done.touch()
        for _ in range(times):
            enough = len(done.read_text().splitlines()) + 1
            url = f"http://localhost:{self._ports['api']}/orders"
            with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=30):
                pass
            wait_until(partial(_has, done, enough), what="the invoice", timeout_s=60)

    def dry_run(self) -> str:
        """What the report of a dry run says."""
        records = self.folder / "records"
        settings = {"ANTIPODE_MODE": "dry-run", "ANTIPODE_DRY_RUN_DIR": str(records)}
        with self.serving(**settings):
            self.order()
        return _antipode("report", str(records), cwd=self.folder, env=environment({}))

    def warned(self, service: str, words: Collection[str]) -> str:
        """The warnings of a service once *words* are there, or for a while, after one order."""
        with self.serving():
            self.order(1)
            with contextlib.suppress(TopologyTimeout):
                wait_until(
                    lambda: all(each in self.told(service) for each in words),
                    what="the warning",
                    timeout_s=10,
                )
        return self.told(service)

    def told(self, service: str) -> str:
        """The warnings of a service."""
        said = self._warnings.read_text(encoding="utf-8")
        return "\n".join(line for line in said.splitlines() if line.startswith(f"{service}: "))

    def spelled(self, words: Iterable[str]) -> list[str]:
        """*words* with the addresses of the servers."""
        return [each.format(**self.servers.places) for each in words]

    def doctor(self, service: str) -> str:
        """What ``antipode doctor`` says of a service that is not in order, and its status."""
        app = "worker" if service == "worker" else f"{service}:app"
        return _antipode(
            "doctor", "--app", app, cwd=self.folder, env=self._environment(service, {})
        )


def _has(path: Path, lines: int) -> bool:
    return len(path.read_text(encoding="utf-8").splitlines()) >= lines


def _antipode(*arguments: str, cwd: Path, env: dict[str, str]) -> str:
    command = [sys.executable, "-m", "antipode", *arguments]
    ran = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=90, check=False
    )
    return f"{ran.stdout}{ran.stderr}exit {ran.returncode}"


def _free_port() -> int:
    with socket.create_server(("localhost", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port
