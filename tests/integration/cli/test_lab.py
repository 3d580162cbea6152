"""`antipode lab`: regions of a store for another program's tests."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa

import antipode_testing
from antipode_shims.embedded import EmbeddedTopology
from antipode_testing.lab import STORES

if TYPE_CHECKING:
    from collections.abc import Iterator


class Running:
    """A lab in a process, as another language's tests run it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self._commands, self._answers = process.stdin, process.stdout
        self.about = self.read()

    def read(self) -> dict[str, Any]:
        """The next line."""
        found: dict[str, Any] = json.loads(self._answers.readline())
        return found

    def do(self, command: str) -> dict[str, Any]:
        """One command's answer."""
        self.say(command)
        return self.read()

    def say(self, command: str) -> None:
        """A command whose answer is not waited for."""
        self._commands.write(command + "\n")
        self._commands.flush()

    def close_input(self) -> None:
        """As a parent that dies."""
        self._commands.close()


@contextmanager
def lab(*arguments: str) -> Iterator[Running]:
    """A lab that has started."""
    process = subprocess.Popen(
        [sys.executable, "-m", "antipode", "lab", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Running(process)
        finally:
            process.terminate()


def folder(running: Running) -> Path:
    """Where the embedded store's files are."""
    return Path(running.about["primary"]["url"]).parent


def test_commands_are_answered() -> None:
    """Each is a line of JSON: where the servers are then, or what is wrong with the command."""
    with lab("embedded", "--lag-ms", "5") as running:
        about = running.about
        assert about["ok"]
        assert about["store"] == "embedded"
        for command in ("where", "lag 2.5", "pause", "resume", "cut", "heal", "wait"):
            assert running.do(command) == about
        failed_over = running.do("failover keep")
        assert failed_over["primary"] == about["replicas"][0]
        assert running.do("reset")["ok"]
        for command, error in {
            "lag": "use 'lag MS'",
            "lag soon": "'soon' is no number of milliseconds",
            "lag -1": "'-1' is no number of milliseconds",
            "failover all": "'keep' or nothing, not 'all'",
            "dance": "no command 'dance': use lag, pause",
        }.items():
            answer = running.do(command)
            assert not answer["ok"]
            assert error in answer["error"]


@pytest.mark.parametrize("ending", ["quit", "end of input", "SIGTERM", "SIGINT"])
def test_it_leaves_nothing(ending: str) -> None:
    """However it ends, servers and files are gone, and the status says how."""
    with lab("embedded") as running:
        assert folder(running).exists()
        if ending == "quit":
            running.say("quit")
        elif ending == "end of input":
            running.close_input()
        else:
            running.process.send_signal(signal.Signals[ending])
        status = running.process.wait(timeout=10)
    assert status == (130 if ending.startswith("SIG") else 0)
    assert not folder(running).exists()


def test_http_takes_the_same_commands() -> None:
    """POST does, GET describes, a wrong command is 400, a browser's page 403; input may end."""
    with lab("embedded", "--http") as running:
        running.close_input()
        control = running.about.pop("control")

        def ask(path: str, method: str = "POST", **headers: str) -> tuple[int, dict[str, Any]]:
            with closing(HTTPConnection(urlsplit(control).netloc, timeout=10)) as connection:
                connection.request(method, path, headers=headers)
                answer = connection.getresponse()
                return answer.status, json.load(answer)

        assert ask("/", "GET") == (200, running.about)
        assert ask("/lag?20") == (200, running.about)
        assert ask("/failover?keep")[1]["primary"] == running.about["replicas"][0]
        assert ask("/dance")[0] == 400
        assert ask("/reset", Origin="http://example.com")[0] == 403


@pytest.mark.slow
@pytest.mark.parametrize(
    "store", [pytest.param(name, marks=pytest.mark.store(name)) for name in ("mariadb", "mysql")]
)
def test_the_address_of_a_sql_store_is_one_for_sqlalchemy(store: str) -> None:
    """`create_engine` takes it as it is printed, with the driver that the extra brings.

    Its account may ask what barriers over incomplete lineages need to know.
    """
    asked = {"mariadb": "SHOW ALL SLAVES STATUS", "mysql": "SHOW REPLICA STATUS"}[store]
    with lab(store) as running:
        replicas = running.about["replicas"]
        for server in (running.about["primary"], *replicas):
            engine = sa.create_engine(server["url"])
            assert engine.driver == "pymysql"
            with engine.connect() as connection:
                assert len(connection.execute(sa.text(asked)).all()) == (server in replicas)
            engine.dispose()


@pytest.mark.store("redis")
def test_lag_and_failover_of_a_real_store() -> None:
    """What was written at the printed address is late at the replica's, and survives `keep`."""
    redis = pytest.importorskip("redis")
    with lab("redis", "--replicas", "2", "--lag-ms", "60000") as running:
        assert len(running.about["replicas"]) == 2

        def get(server: dict[str, Any], key: str) -> bytes | None:
            with redis.Redis(host=server["host"], port=server["port"]) as client:
                value: bytes | None = client.get(key)
                return value

        with redis.Redis.from_url(running.about["primary"]["url"]) as client:
            client.set("late", "1")
        assert get(running.about["replicas"][0], "late") is None
        running.do("lag 0")
        promoted = running.do("failover keep")
        assert promoted["primary"] in running.about["replicas"]
        assert get(promoted["primary"], "late") == b"1"


def test_bad_usage_is_one_line_and_2() -> None:
    """A store that cannot have so many replicas, or is unknown."""
    for arguments in (["embedded", "--replicas", "2"], ["oracle"], ["redis", "--lag-ms", "x"]):
        ended = subprocess.run(
            [sys.executable, "-m", "antipode", "lab", *arguments],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert ended.returncode == 2
        assert ended.stderr.splitlines()[-1].startswith("antipode")


def test_every_store_of_the_testing_tools_is_there() -> None:
    """A new topology is offered by the lab, too."""
    names = {name for name in antipode_testing.__all__ if name.endswith("Topology")} - {"Topology"}
    servers = {getattr(antipode_testing, name).store for name in names}
    assert set(STORES) == {*servers, EmbeddedTopology.store}
