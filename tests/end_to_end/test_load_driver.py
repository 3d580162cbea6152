"""The load driver of the benchmarks, against a small server."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.load import FollowUp, LoadDriverError, Request, arrivals, drive

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(
    shutil.which("go") is None and "CI" not in os.environ, reason="there is no Go"
)

WAIT_S = 60.0


class Server:
    """Answers each request, but holds those of ``/hold`` until so many have come."""

    def __init__(self, until: int) -> None:
        self.until = until
        self.came: list[dict[str, Any]] = []
        self.released_s = 0.0
        self.lock = threading.Lock()
        self.all_there = threading.Event()

    def take(self, path: str, headers: dict[str, str], body: str) -> None:
        with self.lock:
            self.came.append({"path": path, "headers": headers, "body": body})
            if len(self.came) == self.until:
                self.released_s = time.monotonic()
                self.all_there.set()
        if path.startswith("/hold"):
            self.all_there.wait(WAIT_S)


@contextmanager
def serving(*, until: int = 0) -> Iterator[tuple[str, Server]]:
    """A server for the block, and its address."""
    found = Server(until)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            found.take(self.path, dict(self.headers), body)
            answer = json.dumps({"path": self.path}).encode()
            self.send_response(404 if self.path.startswith("/missing") else 200)
            self.send_header("Content-Length", str(len(answer)))
            self.send_header("Set-Cookie", "seen=1; Path=/; HttpOnly")
            self.send_header("Set-Cookie", "lineage=x.y; Path=/")
            self.send_header("Lineage", "of-the-answer")
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET  # noqa: N815 - its base names it so

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - its base's
            pass

    class Threads(ThreadingHTTPServer):
        request_queue_size = 256
        daemon_threads = True

    server = Threads(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", found
    finally:
        server.shutdown()
        thread.join(WAIT_S)
        server.server_close()


def test_a_server_that_stands_still_delays_no_request() -> None:
    """The first request is answered once the last one came: nothing waits for an answer.

    Each latency counts from when that request was due.
    """
    with serving(until=100) as (url, server):
        load = drive([Request(f"{url}/hold/{it}") for it in range(100)], arrivals(200, seed=1))
    assert [it.status for it in load.answers] == [200] * 100
    due_s = [it.due_s - load.began_s for it in load.answers]
    assert due_s == pytest.approx(list(islice(arrivals(200, seed=1), 100)), abs=1e-6)
    for answer in load.answers:
        assert answer.sent_s >= answer.due_s
        assert answer.ended_s >= server.released_s
        assert answer.latency_s >= server.released_s - answer.due_s


def test_a_rate_and_a_seed_say_when_requests_are_due() -> None:
    """The gaps of a rate are exponential around its mean, and a seed has always the same ones."""
    due_s = list(islice(arrivals(50, seed=7), 10_000))
    gaps = [after - before for before, after in zip([0.0, *due_s], due_s, strict=False)]
    assert due_s == list(islice(arrivals(50, seed=7), 10_000))
    assert due_s != list(islice(arrivals(50, seed=8), 10_000))
    assert fmean(gaps) == pytest.approx(1 / 50, rel=0.05)
    # Of an exponential distribution the share below its mean is 1 - 1/e.
    assert sum(it < 1 / 50 for it in gaps) / 10_000 == pytest.approx(0.632, abs=0.02)


def test_a_follow_up_takes_cookies_and_headers_of_a_good_answer_alone() -> None:
    """A follow-up comes after its answer and its think time, with what it is to bring along."""
    with serving() as (url, server):
        load = drive(
            [
                Request(
                    f"{url}/{name}",
                    method="POST",
                    headers={"Authorization": "t"},
                    body='{"a": 1}',
                    then=FollowUp(
                        f"{url}/then/{name}", after_ms=30, cookies=True, copied=("Lineage",)
                    ),
                )
                for name in ("warm", "good", "missing")
            ],
            arrivals(20, seed=1),
            warm_up=1,
        )
    assert [it.number for it in load.warm_up] == [0]
    good, missing = load.answers
    assert (missing.status, missing.error, missing.then) == (404, "", None)
    assert good.status == 200
    assert good.body == ""  # It was not asked for.
    assert good.size == len('{"path": "/good"}')
    assert good.then is not None
    assert json.loads(good.then.body) == {"path": "/then/good"}
    assert good.then.due_s == pytest.approx(good.ended_s + 0.03, abs=1e-6)
    assert good.then.sent_s >= good.then.due_s
    came = {it["path"]: it for it in server.came}
    assert came["/good"]["body"] == '{"a": 1}'
    assert came["/good"]["headers"]["Authorization"] == "t"
    assert came["/then/good"]["headers"]["Cookie"] == "seen=1; lineage=x.y"
    assert came["/then/good"]["headers"]["Lineage"] == "of-the-answer"
    assert "X-Vegeta-Seq" not in came["/good"]["headers"]


def test_a_request_without_an_answer_says_why() -> None:
    """A server that is not there, and one that does not answer in time, leave errors."""
    with serving(until=3) as (url, server):
        nobody = "http://127.0.0.1:1/"
        load = drive([Request(f"{url}/hold"), Request(nobody)], arrivals(100, seed=1), timeout_s=1)
        server.all_there.set()
    late, refused = load.answers
    assert (late.status, refused.status) == (0, 0)
    assert "deadline exceeded" in late.error
    assert "refused" in refused.error
    assert load.achieved() == 0


def test_requests_that_are_due_before_those_above_them_are_refused() -> None:
    """A plan out of order is an error that names the request."""
    with pytest.raises(LoadDriverError, match="request 1 is due before"):
        drive([Request("http://127.0.0.1:1/")] * 2, [1.0, 0.5])
