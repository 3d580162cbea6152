"""The overhead benchmark compares equal calls of two clients, and says where a bound is missed."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks._machine import versions
from benchmarks._statistics import Summary, bound_of
from benchmarks.costs._reports import read
from benchmarks.costs.overhead import __main__ as program
from benchmarks.costs.overhead import _measure
from benchmarks.costs.overhead._network import network
from benchmarks.costs.overhead._registry import BROKERS, CLIENTS, PACKAGES

if TYPE_CHECKING:
    from pathlib import Path

    from antipode_testing import RedisTopology


def measured(ratio: float) -> _measure.Measured:
    """A case with this ratio and a bound of 1.5."""
    spread = Summary.of([1.0])
    assert spread is not None
    return _measure.Measured("redis-py", "loopback", "write", ratio, spread, spread, spread, 1.5)


@pytest.mark.store("redis")
def test_a_round_compares_both_clients_on_both_links(
    antipode_redis: RedisTopology,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each link has each call; the JSON has what the table shows; every call is counted."""
    monkeypatch.setattr(_measure, "CALLS", 10)
    path = tmp_path / "overhead.json"
    assert program.main(["--clients", "redis-py", "--rounds", "2", "--json", str(path)]) == 0
    result = json.loads(path.read_text())
    found = {(case["link"], case["call"]) for case in result["cases"]}
    assert len(found) == len(result["cases"]) == 20
    assert all(case["plain_us"]["count"] == 20 for case in result["cases"])
    slow = [case["plain_us"]["least"] for case in result["cases"] if case["link"] == "0.5 ms"]
    assert min(slow) >= 500
    said = capsys.readouterr().out
    assert "read after a barrier" in said
    assert "read, automatic barriers" in said
    assert "unguarded read, dry run" in said
    report = read(path)
    assert len(report.cases) == 20
    assert not report.as_is
    assert report.processors
    assert report.command == "python -m benchmarks.costs.overhead --rounds 2 --clients redis-py"
    assert {"redis", "redis server"} <= set(report.versions)


@pytest.mark.slow
@pytest.mark.store("sns")
def test_a_round_of_a_broker_publishes_and_receives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call takes a message that its own kind of client published; the bound is the common."""
    monkeypatch.setattr(_measure, "CALLS", 4)
    path, name = tmp_path / "overhead.json", "boto3, SNS and SQS (emulator)"
    assert program.main(["--clients", name, "--rounds", "2", "--json", str(path)]) == 0
    cases = read(path).cases
    calls = [(link, call) for link in _measure.LINKS for call in ("publish", "receive")]
    assert [case.names for case in cases] == [(name, *each) for each in calls]
    assert all(case.bound == bound_of(case.plain_us) for case in cases)


@pytest.mark.parametrize(("ratio", "status"), [(1.5, 0), (1.51, 1)])
def test_check_fails_where_a_bound_is_missed(
    ratio: float, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --check a ratio over its bound is a non-zero status, and a line either way."""

    def measure(*_: Any) -> list[_measure.Measured]:
        return [measured(ratio)]

    monkeypatch.setattr(program, "measure", measure)
    assert program.main(["--check"]) == status
    assert ("over 1.5: redis-py" in capsys.readouterr().out) == bool(status)


def test_a_missing_server_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names what to install, and ends with status 2."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program.main(["--clients", "redis-py"]) == 2
    said = capsys.readouterr().err
    assert said.strip().count("\n") == 0
    assert "redis-server" in said


def test_every_store_has_its_bound() -> None:
    """Every store is measured, none with a laxer bound than promised; None is 5 % or 30 µs."""
    bounds = {store: bound for store, _, bound in CLIENTS.values()}
    sql = dict.fromkeys(("mysql", "mariadb", "postgresql"), 1.15)
    assert bounds == {"redis": 1.5, **sql, "mongodb": 1.15, "dynamodb": None, "s3": None}
    assert {store for store, _ in BROKERS.values()} == {"rabbitmq", "activemq", "sns"}


def test_the_network_delays_each_way() -> None:
    """A round trip takes twice the delay, and little more."""
    import socket
    import threading

    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        network(listener.getsockname(), one_way_s=0.01) as address,
        socket.create_connection(address) as near,
    ):
        far, _ = listener.accept()
        with far:
            echo = threading.Thread(target=lambda: [far.sendall(far.recv(1)) for _ in range(3)])
            echo.start()
            spans_s = []
            for _ in range(3):
                began_s = time.perf_counter()
                near.sendall(b"x")
                near.recv(1)
                spans_s.append(time.perf_counter() - began_s)
            echo.join()
    assert 0.02 <= min(spans_s) < 0.05


def test_the_versions_of_all_that_is_measured_are_asked_for() -> None:
    """Of each client's package, and of each store's server, wherever that is."""
    asked = versions(PACKAGES, sorted({store for store, _, _ in CLIENTS.values()}))
    assert set(PACKAGES) < set(asked)
    assert asked["postgresql server"]
