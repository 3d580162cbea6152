"""The records of a dry run: whole lines, one file for each process, as the schema says."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

import antipode
from antipode import Lineage
from antipode._dry_run.records import Records
from antipode._runtime import call_site as _site
from antipode._runtime import metrics as _metrics
from antipode._runtime import ruled
from antipode.integrations._outgoing import Outgoing
from antipode.shim import floor, record_sent, record_write
from antipode.telemetry import Metric

from ._dry_runs import fake, records, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "spec" / "dry-run-record.schema.json").read_text("utf-8"))

#: A service that writes for ever, and says when it has begun.
ENDLESS = """
import sys
import antipode
from antipode import WriteId
from antipode.shim import record_write

antipode.configure(mode="dry-run", dry_run_dir=sys.argv[1])
number = 0
while True:
    with antipode.scope():
        number += 1
        record_write(WriteId("posts", "log", number))
        if number == 50:
            print("begun", flush=True)
"""
#: One that finds something and ends at once, with a look into it under way.
ENDING = """
import sys
import antipode
from antipode import WriteId
from antipode.shim import floor, record_write
from antipode_shims import embedded

antipode.configure(mode="dry-run", dry_run_dir=sys.argv[1])
with embedded.EmbeddedTopology() as topology:
    topology.pause()
    writer = embedded.shim("posts", topology.primary, reads_from="primary")
    reader = embedded.shim("posts", topology.replica, reads_from="replica")
    with antipode.scope():
        writer.write("key", b"1")
        reader.read("key")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where this process, in a dry run, writes."""
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path / "run", region="eu")
    return tmp_path / "run"


def test_records_follow_the_schema(folder: Path) -> None:
    """Every kind of record is what the specification promises to its readers."""
    store = fake()
    antipode.configure(datastores="cache=redis://cache/1")
    ruled.follow("redis")
    record_write(write())
    ruled.unfollow("redis")
    with antipode.scope():
        record_write(write())
        floor(store)
        antipode.barrier(timeout=1, only=["posts", "a"], exclude="users")
        floor(store)
        record_sent("posts")
        Outgoing("users", "users").answered(None)
    antipode.shim.unregister("posts")
    found = records(folder)
    validator = Draft202012Validator(SCHEMA)
    for record in found:
        validator.validate(record)
    kinds = {record["kind"] for record in found}
    assert kinds == set(SCHEMA["properties"]["kind"]["enum"])
    assert [record["n"] for record in found] == list(range(len(found)))
    assert len({record["process"] for record in found}) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "read", "verdict": "maybe"},
        {"kind": "write", "write": {"datastore": "posts", "log": "log", "version": 1}},
        {"kind": "evidence", "of": 1, "confirmed": False, "waited_s": None},
        {"kind": "other"},
        {"kind": "scope", "opened": "here"},
    ],
)
def test_schema_refuses_what_is_none(wrong: dict[str, Any]) -> None:
    """The schema is no formality."""
    head = {"v": 1, "t": 1.0, "process": "0" * 12, "n": 1}
    assert not Draft202012Validator(SCHEMA).is_valid({**head, **wrong})


def test_file_is_named_after_moment_and_process(folder: Path) -> None:
    """Files of many processes lie in one directory, and sort by their begin."""
    with antipode.scope():
        pass
    (file,) = folder.iterdir()
    moment, process, random = file.stem.split("-")
    assert file.suffix == ".jsonl"
    assert len(moment) == len("20260101T000000Z")
    assert int(process) == os.getpid()
    assert len(random) == 6


def test_threads_write_whole_lines(folder: Path) -> None:
    """Lines of threads are never mixed, and no number is given twice."""

    def request(number: int) -> None:
        for _ in range(50):
            with antipode.scope():
                record_write(write(number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(request, range(4)))
    found = records(folder)
    assert [record["n"] for record in found] == list(range(1 + 4 * 50 * 2))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_child_process_writes_a_file_of_its_own(folder: Path) -> None:
    """A fork inherits neither the file nor the name; both go on, within the same request."""
    with antipode.scope():
        record_write(write(1))
        child = os.fork()
        if child == 0:
            record_write(write(2))
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        record_write(write(3))
    assert len(list(folder.iterdir())) == 2
    processes = records(folder, "process")
    assert {process["pid"] for process in processes} == {os.getpid(), child}
    assert len({process["process"] for process in processes}) == 2
    assert len({record["request"] for record in records(folder, "write")}) == 1
    assert sorted(record["write"]["version"] for record in records(folder, "write")) == [
        "1",
        "2",
        "3",
    ]


def test_killed_process_leaves_whole_lines(tmp_path: Path) -> None:
    """Whatever a process wrote before it died can be read."""
    command = [sys.executable, "-c", ENDLESS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGKILL)
    (file,) = tmp_path.iterdir()
    assert file.read_bytes().endswith(b"\n")
    assert len(records(tmp_path, "write")) >= 50


def test_process_ends_with_looks_under_way(tmp_path: Path) -> None:
    """Looking into a read keeps no process alive; what is known by its end is written."""
    command = [sys.executable, "-W", "error", "-c", ENDING, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert "Traceback" not in done.stderr
    (read,) = records(tmp_path, "read")
    (evidence,) = records(tmp_path, "evidence")
    assert evidence["of"] == read["n"]
    assert evidence["waited_s"] is None


def test_directory_that_cannot_be_written_raises_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application goes on; what is lost is counted, and logged once."""
    monkeypatch.setattr(_metrics, "_logged", set())
    (tmp_path / "file").write_text("in the way")
    before = antipode.telemetry.metrics().get(Metric("dry_run_unwritten"), 0)
    antipode.configure(mode="dry-run", dry_run_dir=tmp_path / "file" / "run")
    with caplog.at_level(logging.WARNING, logger="antipode"):
        for _ in range(3):
            with antipode.scope():
                antipode.barrier(timeout=1)
    assert antipode.telemetry.metrics()[Metric("dry_run_unwritten")] == before + 1
    assert len([line for line in caplog.messages if "no more records" in line]) == 1


def test_line_that_is_written_in_part_is_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk nothing is appended to half a line."""
    kept = Records(str(tmp_path), None)
    assert kept.put("lint", {}) == 1
    plain = os.write
    monkeypatch.setattr(os, "write", lambda file, data: plain(file, data[:10]))
    assert kept.put("lint", {}) == -1
    monkeypatch.setattr(os, "write", plain)
    assert kept.put("lint", {}) == -1
    kept.close()
    (file,) = tmp_path.iterdir()
    assert len(file.read_bytes().splitlines()) == 3


def called_from(filename: str, module: str, call: Callable[[], Any]) -> Any:
    """What *call* returns when it is made in *filename*."""
    return calling(filename, module, call)()


def calling(filename: str, module: str, call: Callable[[], Any]) -> Callable[[], Any]:
    """A function of *filename* that returns what *call* does."""
    names: dict[str, Any] = {"__name__": module, "call": call}
    exec(compile("def within():\n    return call()\n", filename, "exec"), names)  # noqa: S102
    found: Callable[[], Any] = names["within"]
    return found


@pytest.mark.parametrize(
    ("filename", "module"),
    [
        ("/venv/lib/python3.12/site-packages/django/db/models.py", "django.db.models"),
        (f"{os.path.dirname(os.__file__)}/queue.py", "queue"),  # noqa: PTH120 - as the library
        ("/checkout/redis/client.py", "redis.client"),
        ("<frozen importlib._bootstrap>", "importlib._bootstrap"),
    ],
)
def test_site_is_outside_of_libraries(filename: str, module: str) -> None:
    """The place is the application's, whatever framework or client the call went through."""
    frame: FrameType = called_from(filename, module, _site.caller)
    assert frame.f_code.co_filename == __file__


def test_site_of_an_installed_application() -> None:
    """An application that was installed as a package is found where there is no other place."""
    filename = "/venv/lib/python3.12/site-packages/shop/views.py"
    names: dict[str, Any] = {"__name__": "shop.views", "call": _site.caller}
    exec(compile("def view():\n    return call()\n", filename, "exec"), names)  # noqa: S102
    with ThreadPoolExecutor(1) as pool:  # Below it, there is Python's own code alone.
        frame: FrameType = pool.submit(names["view"]).result()
    assert frame.f_code.co_filename == filename


SITE = "/venv/lib/python3.12/site-packages"
CHECKOUT = "/checkout/shop"
HANDLER = (f"{SITE}/django/core/handlers/base.py", "django.core.handlers.base")
DRIVER = (f"{CHECKOUT}/manage.py", "__main__")
VIEW = (f"{SITE}/oscar/views.py", "oscar.views")
QUERY = (f"{SITE}/django/db/models/query.py", "django.db.models.query")
PLUGIN = (f"{SITE}/plugin/calls.py", "plugin.calls")
OWN_VIEW = (f"{CHECKOUT}/views.py", "shop.views")


@pytest.mark.parametrize(
    ("frames", "packages", "expected"),
    [
        ([DRIVER, HANDLER, VIEW, QUERY], None, VIEW),
        ([DRIVER, HANDLER, VIEW, PLUGIN, QUERY], None, PLUGIN),
        ([DRIVER, HANDLER, VIEW, PLUGIN, QUERY], ["oscar"], VIEW),
        ([DRIVER, HANDLER, VIEW, PLUGIN, QUERY], ["oscar.views"], VIEW),
        ([DRIVER, HANDLER, VIEW, PLUGIN, QUERY], ["oscar.view", "osc"], PLUGIN),
        ([DRIVER, HANDLER, OWN_VIEW, PLUGIN, QUERY], None, OWN_VIEW),
        ([DRIVER, HANDLER, QUERY], None, DRIVER),
        ([DRIVER, VIEW, QUERY], None, DRIVER),
        ([DRIVER, VIEW, QUERY], ["oscar"], VIEW),
    ],
)
def test_site_below_the_handler_of_a_framework(
    frames: list[tuple[str, str]], packages: list[str] | None, expected: tuple[str, str]
) -> None:
    """An installed application has its own lines, not that of whoever drives the framework."""
    antipode.configure(app_packages=packages)
    call: Callable[[], Any] = _site.caller
    for filename, module in reversed(frames):
        call = calling(filename, module, call)
    frame: FrameType = call()
    assert (frame.f_code.co_filename, frame.f_globals["__name__"]) == expected


def test_nested_scopes_are_requests_of_their_own(folder: Path) -> None:
    """Opening a scope within another begins another request."""
    with antipode.scope(Lineage([write()])), antipode.scope():
        pass
    requests = [record["request"] for record in records(folder, "scope")]
    assert len(set(requests)) == 2
