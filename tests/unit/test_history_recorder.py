"""Histories that shims record: what is in them, and what the checker says of them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.baggage.propagation import W3CBaggagePropagator

import antipode
from antipode import Lineage
from antipode._request.recorded import recorded
from antipode.checker import HistoryError, check, load
from antipode.propagation import AntipodePropagator, extract_response, inject_response
from antipode.shim import Shim, stored_lineage, stored_text
from antipode_shims import embedded
from antipode_shims.embedded import EmbeddedTopology

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.context import Context

ROOT = Path(__file__).resolve().parents[2]
PROPAGATOR = AntipodePropagator(W3CBaggagePropagator())


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where this process records while the test runs."""
    antipode.configure(history_dir=tmp_path / "history")
    yield tmp_path / "history"
    antipode.configure(history_dir=None)


def verdict(folder: Path) -> str:
    """What the checker says of what was recorded so far."""
    return str(check(load([folder])))


def lines(folder: Path, *kinds: str) -> list[dict[str, Any]]:
    """The operations of these kinds that were recorded so far."""
    texts = [path.read_text(encoding="utf-8") for path in folder.iterdir()]
    found = [json.loads(line) for text in texts for line in text.splitlines()]
    return [line for line in found if line["kind"] in kinds]


def sent() -> dict[str, str]:
    """The headers of a call that the current request makes."""
    headers: dict[str, str] = {}
    PROPAGATOR.inject(headers)
    return headers


def received(headers: dict[str, str]) -> Context:
    """The context of the request that comes with *headers*."""
    from opentelemetry.context import Context

    return PROPAGATOR.extract(headers, Context())


class Within:
    """A block in the context of a request that arrived."""

    def __init__(self, headers: dict[str, str]) -> None:
        self._context = received(headers)

    def __enter__(self) -> None:
        from opentelemetry import context

        self._token = context.attach(self._context)

    def __exit__(self, *_: object) -> None:
        from opentelemetry import context

        context.detach(self._token)


class Values(Shim):
    """A store in memory: a key has one value, of whoever wrote it last."""

    def __init__(self, datastore: str = "values") -> None:
        super().__init__(datastore)
        self.held: dict[str, tuple[bytes, str]] = {}

    @recorded("write", expires=("ex",))
    def write(self, key: str, value: bytes, *, ex: int | None = None) -> Lineage:
        """Write."""
        del ex
        self.held[key] = value, stored_text(antipode.current())
        return antipode.current()

    @recorded("read")
    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        """Read."""
        value, text = self.held.get(key, (None, None))
        return value, stored_lineage(self.datastore, text)

    @recorded("read")
    async def read_async(self, key: str) -> tuple[bytes | None, Lineage]:
        """Read."""
        return self.read.__wrapped__(self, key)  # type: ignore[attr-defined]

    def open_endpoint(self, *, timeout_s: float) -> Any:
        """Nobody waits."""
        raise NotImplementedError


@pytest.mark.parametrize(("guarded", "said"), [(False, "violation (XCY, carried)"), (True, "ok")])
def test_a_barrier_makes_the_difference(folder: Path, *, guarded: bool, said: str) -> None:
    """A reader that was sent a lineage violates it, unless it waits before it reads."""
    with EmbeddedTopology() as topology:
        us = embedded.shim("posts", topology.primary)
        eu = embedded.shim("posts", topology.replica, reads_from="replica")
        topology.pause()
        with antipode.scope():
            us.write("1", b"a post")
            headers = sent()
        with Within(headers):
            if guarded:
                topology.resume()
                antipode.barrier(timeout=20)
            eu.read("1")
        us.close()
        eu.close()
    assert verdict(folder) == said


def test_an_answer_is_a_message(folder: Path) -> None:
    """What a callee wrote comes before what its caller does with the answer."""
    values = Values()
    with antipode.scope():
        with Within(sent()):
            values.write("a", b"1")
            answer: dict[str, str] = {}
            inject_response(answer)
        extract_response(answer)
        values.write("b", b"2")
    writes, messages = lines(folder, "write"), lines(folder, "send", "receive")
    assert [one["kind"] for one in messages] == ["send", "receive"]
    assert messages[0]["process"] == writes[0]["process"] != writes[1]["process"]
    assert messages[1]["process"] == writes[1]["process"]
    assert len({one["lineage"] for one in (*writes, *messages)}) == 1


def test_nothing_of_it_is_seen(folder: Path) -> None:
    """Lineages that a program sees have no notes of the recorder."""
    values = Values()
    with antipode.scope():
        values.write("a", b"1")
        with Within(sent()):
            assert values.read("a") == (b"1", Lineage())
            assert antipode.current() == Lineage()
    assert "~0v" in values.held["a"][1]
    assert verdict(folder) == "ok"


def test_a_request_in_two_threads_is_one(folder: Path) -> None:
    """What follows in another thread of a request comes after what is done; what overlaps, not."""
    values = Values()
    inside, outside = threading.Event(), threading.Event()

    class Slow(Values):
        @recorded("read")
        def read(self, key: str) -> tuple[bytes | None, Lineage]:
            """Read, while another one does."""
            inside.set()
            assert outside.wait(20)
            return None, Lineage()

    with antipode.scope(), ThreadPoolExecutor(1) as pool:
        values.write("first", b"1")
        slow = pool.submit(antipode.branch(Slow("slow").read), "key")
        assert inside.wait(20)
        values.write("meanwhile", b"2")
        outside.set()
        slow.result()
        values.write("last", b"3")
    first, meanwhile, read, last = lines(folder, "write", "read")
    assert first["process"] == read["process"]
    assert meanwhile["process"] != read["process"]
    assert last["process"] == read["process"]
    order = [(one["kind"], one.get("key")) for one in lines(folder, "write", "read", "receive")]
    assert order.index(("receive", None)) < order.index(("write", "meanwhile"))
    assert verdict(folder) == "ok"


async def test_coroutines_are_recorded(folder: Path) -> None:
    """An asynchronous read is recorded once, when it is over."""
    values = Values()
    with antipode.scope():
        values.write("a", b"1")
        await values.read_async("a")
    written, read = lines(folder, "write", "read")
    assert read["version"] == written["version"]
    assert read["site"]["function"] == "test_coroutines_are_recorded"


def test_a_value_from_before_is_unknown(folder: Path) -> None:
    """A read of what nobody recorded is no violation, and no proof either."""
    values = Values()
    values.held["old"] = b"1", "1"
    with antipode.scope():
        values.write("new", b"2")
        values.read("old")
    assert verdict(folder) == "unknown"
    result = check(load([folder]))
    assert result.reason == "of 1 operations nobody knows what they read or received"


def test_a_write_that_failed_is_left_out(folder: Path) -> None:
    """Nobody knows whether a write that raised was done: what reads return of it is unknown."""

    class Lost(Values):
        @recorded("write")
        def write(self, key: str, value: bytes, *, ex: int | None = None) -> Lineage:
            """Write, and lose the answer."""
            self.held[key] = value, stored_text(antipode.current())
            raise ConnectionError

    lost = Lost()
    with antipode.scope(), pytest.raises(ConnectionError):
        lost.write("a", b"1")
    with antipode.scope():
        lost.read("other")
    assert verdict(folder) == "ok"
    with antipode.scope():
        lost.read("a")
    assert verdict(folder) == "unknown"


def test_what_expires_may_be_gone(folder: Path) -> None:
    """A read that finds nothing of a key that expires is unknown."""
    values = Values()
    with antipode.scope():
        values.write("a", b"1", ex=1)
        values.held.clear()
        values.read("a")
    assert verdict(folder) == "unknown"


def test_what_does_not_expire_may_not_be_gone(folder: Path) -> None:
    """Its twin without an expiry is a violation: the recorder found one."""
    values = Values()
    with antipode.scope():
        values.write("a", b"1")
        values.held.clear()
        values.read("a")
    assert verdict(folder) == "violation"


def test_other_requests_have_no_order(folder: Path) -> None:
    """Two requests of one process that exchange nothing may see each other's writes or not."""
    values = Values()
    with antipode.scope():
        values.write("a", b"1")
    values.held.clear()
    with antipode.scope():
        values.read("a")
    values.read("a")
    assert verdict(folder) == "ok"
    assert len({one["process"] for one in lines(folder, "write", "read")}) == 3


def test_a_dry_run_records_as_well(folder: Path, tmp_path: Path) -> None:
    """Both notes travel where a process does both."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path / "dry")
    try:
        values = Values()
        with antipode.scope():
            values.write("a", b"1")
            headers = sent()
            assert "~0r" in headers["baggage"]
            with Within(headers):
                values.read("a")
        assert [one["kind"] for one in lines(folder, "receive")] == ["receive"]
    finally:
        antipode.configure(mode="enforce", dry_run_dir=None)


KILLED = """
import os, signal, sys
import antipode
from antipode_shims import embedded
from antipode_shims.embedded import EmbeddedTopology

posts = embedded.shim("posts", sys.argv[1])
with antipode.scope():
    posts.write("1", b"a post")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_what_it_did(tmp_path: Path) -> None:
    """A part without an end, and with half a line, is read as far as it goes."""
    folder = tmp_path / "history"
    command = [sys.executable, "-c", KILLED, str(tmp_path / "posts.db")]
    environment = {**os.environ, "ANTIPODE_HISTORY_DIR": str(folder)}
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL
    (part,) = folder.iterdir()
    with part.open("a") as file:
        file.write('{"kind": "wri')
    assert str(check(load([folder]))) == "ok"
    assert len(load([folder]).operations) == 1


def test_a_folder_that_cannot_be_written_harms_no_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The write succeeds; it is logged once that there is no history."""
    (tmp_path / "file").write_text("")
    antipode.configure(history_dir=tmp_path / "file" / "history")
    try:
        values = Values()
        with antipode.scope():
            values.write("a", b"1")
            values.write("b", b"2")
    finally:
        antipode.configure(history_dir=None)
    assert [record for record in caplog.text.splitlines() if "no more of the history" in record]
    assert caplog.text.count("no more of the history") == 1


def test_a_whole_history_needs_its_end(tmp_path: Path) -> None:
    """Only parts that say that they are partial may be cut off."""
    path = tmp_path / "cut.jsonl"
    path.write_text('{"kind": "history", "v": 1}\n')
    with pytest.raises(HistoryError, match="cut off"):
        load([path])
    path.write_text('{"kind": "history", "v": 1, "partial": true}\n')
    assert load([path]).operations == ()


def blocks(page: str, language: str) -> list[str]:
    """The code of *language* in the section of the guide about recording."""
    section = page.partition("## Record and check")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, flags=re.DOTALL)


@pytest.mark.slow
def test_the_guide_records_and_checks(tmp_path: Path) -> None:
    """What the guide says in five lines runs as it stands there, and prints what it says."""
    page = (ROOT / "docs" / "guides" / "checker.md").read_text(encoding="utf-8")
    (program,), (console,) = blocks(page, "python"), blocks(page, "console")
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    command, *printed = console.splitlines()
    assert command.startswith("$ antipode ")
    shown = subprocess.run(
        [sys.executable, "-m", *command.removeprefix("$ ").split()],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (shown.stdout.splitlines(), shown.returncode) == (printed, 0)
