"""The pytest plugin's dry run over several processes: workers, crashes, forks, services."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit._dry_run_suite import (
    DRY,
    FAIL,
    FINDING,
    REPORT,
    STORES,
    TESTS,
    findings,
    make_suite,
    reported,
    run,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

pytest_plugins = ["pytester"]


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A service with a missing barrier, and its tests."""
    return make_suite(pytester, monkeypatch)


def test_every_order_and_worker_count_finds_the_same(suite: pytest.Pytester) -> None:
    """Forwards, backwards and in two workers: the same ids, tests and lines, from one report."""
    suite.makepyfile(test_more=TESTS.replace("test_", "test_more_"))
    run(suite, DRY, REPORT)
    first = findings(suite)
    assert [(name, len(tests)) for name, tests, _ in first] == [(FINDING, 4)]
    backwards = [f"{file}::test_{name}" for file, name in backwards_of()]
    run(suite, DRY, REPORT, *backwards)
    assert findings(suite) == first
    result = run(suite, DRY, FAIL, REPORT, "-n", "2")
    assert findings(suite) == first
    assert result.ret == 1
    assert len([line for line in result.outlines if line.startswith(FINDING)]) == 1
    assert reported(suite)["records"]["files"] == 2


def backwards_of() -> Iterable[tuple[str, str]]:
    """The tests of both files, the last first."""
    names = ("other", "two", "one")
    yield from (("test_more.py", f"more_{name}") for name in names)
    yield from (("test_feed.py", name) for name in names)


def test_killed_worker_loses_nothing(suite: pytest.Pytester) -> None:
    """What a worker recorded before it was killed is in the report, with all of the others."""
    suite.makepyfile(
        test_killed="""\
import os, signal
import feed

def test_killed(stores):
    feed.publish(*stores, "three")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    result = run(suite, DRY, FAIL, REPORT, "-n", "2")
    result.assert_outcomes(passed=3, failed=1)
    ((name, tests, _),) = findings(suite)
    assert name == FINDING
    assert tests == [
        "test_feed.py::test_one",
        "test_feed.py::test_two",
        "test_killed.py::test_killed",
    ]


def test_child_processes_record_too(suite: pytest.Pytester) -> None:
    """A forked child that dies at once, and a service started by a test, are in the report."""
    suite.makepyfile(
        service=STORES.replace("@pytest.fixture\n", "")
        + "import pathlib, sys, feed\n"
        + 'for pair in stores(pathlib.Path(sys.argv[1])): feed.publish(*pair, "one")\n',
        test_feed="""\
import os, subprocess, sys
import feed

def test_forked(stores):
    child = os.fork()
    if not child:
        feed.publish(*stores, "one")
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

def test_service(tmp_path):
    subprocess.run([sys.executable, "service.py", tmp_path], check=True)
""",
    )
    run(suite, DRY, REPORT, "-W", "ignore::DeprecationWarning").assert_outcomes(passed=2)
    assert findings(suite) == [
        (FINDING, ["test_feed.py::test_forked", "test_feed.py::test_service"], [12])
    ]


def test_asyncio_tests_are_seen(suite: pytest.Pytester) -> None:
    """With pytest-asyncio the test's name and the read's line are the same as without."""
    suite.makepyfile(
        test_feed="""\
import asyncio
import antipode
import pytest

@pytest.mark.asyncio
async def test_async(stores):
    writer, reader = stores
    with antipode.scope():
        writer.write("one", b"hello")
        await asyncio.gather(show(reader), show(reader))

async def show(reader):
    return await reader.read_async("one")
"""
    )
    result = run(suite, DRY, FAIL, REPORT)
    result.assert_outcomes(passed=1)
    ((_, tests, lines),) = findings(suite)
    assert (tests, lines) == (["test_feed.py::test_async"], [13])


SERVICE = """\
import json, sys
import antipode
from antipode_shims import embedded
from opentelemetry import context, propagate

antipode.instrument()
with embedded.shim("posts", sys.argv[1], reads_from="replica") as reader:
    for line in sys.stdin:
        token = context.attach(propagate.extract(json.loads(line)))
        reader.read("one")
        context.detach(token)
        print("done", flush=True)
"""
CALLS = """\
import json, subprocess, sys
import antipode
import pytest
from antipode_shims import embedded
from opentelemetry import propagate

@pytest.fixture(scope="session")
def call(tmp_path_factory):
    antipode.instrument()
    path = tmp_path_factory.mktemp("stores") / "posts.db"
    with embedded.shim("posts", path, reads_from="primary") as writer:
        command = [sys.executable, "service.py", path]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes) as service:
            def call():
                carrier = {}
                with antipode.scope():
                    writer.write("one", b"hello")
                    propagate.inject(carrier)
                print(json.dumps(carrier), file=service.stdin, flush=True)
                assert service.stdout.readline() == "done\\n"
            yield call
            service.stdin.close()

def test_first(call):
    pass

def test_second(call):
    call()
"""


def test_request_belongs_to_the_test_that_made_it(suite: pytest.Pytester) -> None:
    """A service that an earlier test started: its reads name the test whose request it serves."""
    suite.makepyfile(service=SERVICE, test_feed=CALLS)
    run(suite, DRY, REPORT).assert_outcomes(passed=2)
    ((_, tests, lines),) = findings(suite)
    assert (tests, lines) == (["test_feed.py::test_second"], [10])
    assert reported(suite)["findings"][0]["read"]["file"] == "service.py"
