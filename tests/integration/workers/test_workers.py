"""The workers that services run in: threads, forks, greenlets and other loops, on a real store."""

from __future__ import annotations

import contextlib
import importlib.util
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import antipode
from antipode_testing import wait_until
from tests.integration._ingress import ask, sent
from tests.integration._processes import ROOT, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import RedisTopology

pytestmark = pytest.mark.store("redis")

_FLASK = ("--bind", "fd://{fd}", "tests.integration.workers._flask:app")
_PREFORK = ("--bind", "fd://{fd}", "--preload", "tests.integration.workers._prefork:app")
_FASTAPI = ("--fd", "{fd}", "--log-level", "warning", "tests.integration.workers._fastapi:app")
#: By what is beneath: what must be installed, and the program.
WORKERS = {
    "threads": (("gunicorn", "flask"), ("gunicorn", "--threads", "20", *_FLASK)),
    "prefork": (
        ("gunicorn", "flask"),
        ("gunicorn", "--workers", "2", "--threads", "20", *_PREFORK),
    ),
    "gevent": (("gunicorn", "gevent", "flask"), ("gunicorn", "-k", "gevent", *_FLASK)),
    "asyncio": (
        ("uvicorn", "fastapi"),
        ("uvicorn", "--loop", "asyncio", "--http", "h11", *_FASTAPI),
    ),
    "uvloop": (
        ("uvicorn", "uvloop", "httptools", "fastapi"),
        ("uvicorn", "--loop", "uvloop", "--http", "httptools", *_FASTAPI),
    ),
}
CALLERS = 10
REQUESTS = 100


@pytest.fixture(
    params=[
        pytest.param(each, marks=[pytest.mark.slow] if each == "prefork" else [])
        for each in WORKERS
    ]
)
def port(request: pytest.FixtureRequest, antipode_redis: RedisTopology) -> Iterator[int]:
    """The service, in one worker of this kind."""
    needed, program = WORKERS[request.param]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    where = {
        "PRIMARY": str(antipode_redis.primary.port),
        "REPLICA": str(antipode_redis.replica.port),
    }
    # gunicorn puts a socket of its own into the home directory; its path may not be long.
    with tempfile.TemporaryDirectory(prefix="antipode-worker-") as home:
        where |= {"HOME": home, "XDG_RUNTIME_DIR": home}
        with serving(program, where) as found:
            yield found


@contextlib.contextmanager
def serving(program: tuple[str, ...], settings: dict[str, str]) -> Iterator[int]:
    """The port of *program*, in a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        found, number = listening.getsockname()[1], listening.fileno()
        running = subprocess.Popen(
            [sys.executable, "-m", *(each.format(fd=number) for each in program)],
            env=environment(settings),
            cwd=ROOT,
            pass_fds=[number],
            stderr=subprocess.DEVNULL,
        )

    def answers() -> bool:
        assert running.poll() is None
        with contextlib.suppress(OSError):
            return ask(found).status == 200
        return False

    try:
        wait_until(answers, what="the worker", timeout_s=30)
        yield found
    finally:
        running.terminate()
        running.wait(30)


def written(port: int, key: str) -> dict[str, str]:
    """Write *key*; the headers of whoever depends on it, and on nothing else."""
    answer = ask(port, f"/write/{key}")
    assert answer.lineage is not None
    assert len(answer.lineage) == 1
    assert answer.lineage == antipode.deserialize(answer.body.decode())
    return sent(*answer.lineage)


def test_concurrent_requests_keep_their_lineages(port: int, antipode_redis: RedisTopology) -> None:
    """Each answer holds its own write alone, and each read behind a barrier finds it."""
    antipode_redis.set_lag(20)

    def follow(number: int) -> str:
        key = f"key-{number}"
        headers = written(port, key)
        return ask(port, f"/read/{('now', 'read')[number % 2]}/{key}", headers).body.decode()

    with ThreadPoolExecutor(CALLERS) as pool:
        assert set(pool.map(follow, range(REQUESTS))) == {"b'value'"}


@pytest.mark.parametrize("at", ["now", "read"])
def test_who_waits_does_not_stop_the_worker(
    port: int, antipode_redis: RedisTopology, at: str
) -> None:
    """While barriers wait, in no thread of their own perhaps, other requests are answered."""
    antipode_redis.pause()
    headers = written(port, "key")
    with ThreadPoolExecutor(CALLERS) as pool:
        waiting = [pool.submit(ask, port, f"/read/{at}/key", headers) for _ in range(CALLERS - 1)]
        for _ in range(20):
            assert ask(port).status == 200
        assert not any(each.done() for each in waiting)
        antipode_redis.resume()
        assert {each.result().body for each in waiting} == {b"b'value'"}


@pytest.mark.parametrize("port", ["asyncio", "uvloop"], indirect=True)
def test_background_work_shows_in_the_answer(port: int) -> None:
    """A task that still runs when the answer is made is an open branch, on loops of any make."""
    for key in ("a", "b"):
        answer = ask(port, f"/start/{key}")
        assert answer.lineage is not None
        assert answer.lineage.open_branches == 1
    answer = ask(port, "/go-on")
    assert answer.lineage is None
