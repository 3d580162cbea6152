"""Throughput: rounds of each way in turns, counted and paid for, and where the time goes."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from antipode._barrier.registry import shims_of
from benchmarks import _processors
from benchmarks._machine import ROOT
from benchmarks.costs._page import page
from benchmarks.costs._reports import read
from benchmarks.costs.throughput import __main__ as program
from benchmarks.costs.throughput import _measure, _profile
from benchmarks.costs.throughput._measure import WAYS, Turn
from benchmarks.costs.throughput._profile import package_of, profile
from benchmarks.post_notification._storage import POST_STORAGE

if TYPE_CHECKING:
    from antipode_testing import RedisTopology


@pytest.mark.store("redis")
def test_each_way_has_its_turns_over_a_real_store(
    antipode_redis: RedisTopology,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Rounds are made, client and servers spend time on them, and the page of costs has them."""
    monkeypatch.setattr(_measure, "THREADS", 4)
    monkeypatch.setattr(_profile, "ROUNDS", 20)
    path = tmp_path / "throughput.json"
    arguments = ["--stores", "redis", "--blocks", "1", "--turn", "0.1", "--json", str(path)]
    assert program.main(arguments) == 0
    cases = json.loads(path.read_text())["cases"]
    assert [case["way"] for case in cases] == [way for way in WAYS if way != "plain"]
    for case in cases:
        assert min(case["per_s"]) > 0
        assert case["servers_us"] is not None
        assert any(name.startswith("antipode") for name in case["shares"])
    assert not shims_of(POST_STORAGE), "barriers of the next store would ask this one, too"
    parts = cases[0]["parts"]
    assert list(parts) == ["write", "read", "scope"]
    assert parts["scope"][0] == 0
    assert min(parts["scope"][1], *parts["write"], *parts["read"]) > 0
    assert "rounds/s" in capsys.readouterr().out
    report = read(path)
    assert report.short
    assert [case.bound is None for case in report.cases] == [False, True, True]
    said = page({"throughput": report})
    assert "## Throughput at saturation" in said
    assert "- redis, `instrumented`: write " in said


def turns(*client_us: float) -> list[Turn]:
    """Turns with these costs of the client."""
    return [Turn(1000.0, each, None) for each in client_us]


def test_a_way_is_compared_turn_by_turn() -> None:
    """What makes a whole block slow is no difference; servers that say nothing have no figure."""
    plain, ours = turns(100, 200, 300, 400, 500), turns(110, 212, 310, 408, 510)
    found = _measure._beside("redis", "instrumented", plain, ours, shares={}, parts={})
    assert found.above_us is not None
    assert 8 < found.above_us.low < 10 < found.above_us.high < 12
    assert found.ratio == pytest.approx(310 / 300)
    assert found.bound == pytest.approx(1.1)
    assert found.servers_us is None
    assert _measure._beside("redis", "auto", plain, ours, shares={}, parts={}).bound is None


def test_a_round_that_fails_ends_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no round, and no figure is made of the others."""

    def fail(*_: object) -> object:
        raise ConnectionError("gone")

    monkeypatch.setattr(_measure, "round_of", lambda *_: fail)
    with pytest.raises(ConnectionError, match="gone"):
        _measure._turn(None, "plain", 0.01, ())  # type: ignore[arg-type]


@pytest.mark.slow
def test_time_is_told_by_package() -> None:
    """Ours by their rooms, installed ones by their names, the rest is Python's."""
    assert package_of(str(ROOT / "antipode" / "_request" / "scope.py")) == "antipode/_request"
    assert package_of(str(ROOT / "shims" / "antipode_shims" / "redis" / "_shim.py")) == (
        "antipode_shims/redis"
    )
    assert package_of("/anywhere/site-packages/redis/client.py") == "redis"
    assert package_of("~") == "Python"
    assert package_of("/usr/lib/python3.11/socket.py") == "Python"
    shares = profile(lambda number: sum(range(1000 * number)))
    assert sum(shares.values()) == pytest.approx(1, abs=0.01)


def test_the_processor_time_of_a_server_is_found_by_its_port() -> None:
    """That of the process that listens, here this one; of none where nobody does."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("this system says nothing of processes in /proc")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        spent = _processors.spent(port)
        own = os.times()
        assert spent == pytest.approx(own.user + own.system, abs=1)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        assert _processors.spent(closed.getsockname()[1]) is None


@pytest.mark.parametrize("arguments", [["--blocks", "0"], ["--turn", "0"], ["--stores", "oracle"]])
def test_bad_arguments_are_refused(arguments: list[str]) -> None:
    """Nothing is started."""
    with pytest.raises(SystemExit) as ended:
        program.main(arguments)
    assert ended.value.code == 2
