"""A service with one missing barrier, its tests, and runs of them in a dry run."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

FEED = """\
import antipode


def publish(writer, reader, key):
    with antipode.scope():
        writer.write(key, b"hello")
        show(reader, key)
        return titled(reader, key)


def show(reader, key):
    return reader.read(key)


def titled(reader, key):
    antipode.barrier(timeout=1)
    return reader.read(key)
"""
# One file is both regions: nothing lags at all.
STORES = """\
import pytest
from antipode_shims import embedded


@pytest.fixture
def stores(tmp_path):
    writer = embedded.shim("posts", tmp_path / "posts.db", reads_from="primary")
    reader = embedded.shim("posts", tmp_path / "posts.db", reads_from="replica")
    with writer, reader:
        yield writer, reader
"""
TESTS = """\
import feed


def test_one(stores):
    feed.publish(*stores, "one")


def test_two(stores):
    feed.publish(*stores, "two")


def test_other():
    pass
"""
#: Of the one read without a barrier in `FEED`.
FINDING = "u61b03f6d"
DRY = "--antipode-dry-run"
FAIL = "--antipode-fail-on=unguarded"
REPORT = "--antipode-report=out"


def make_suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """The service and its tests, in a folder of their own."""
    for name in tuple(os.environ):
        if name.startswith("ANTIPODE_"):
            monkeypatch.delenv(name)
    pytester.makepyfile(feed=FEED, test_feed=TESTS)
    pytester.makeconftest(STORES)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\npythonpath = .\n")
    return pytester


def run(suite: pytest.Pytester, *options: str) -> pytest.RunResult:
    """A run in a process of its own."""
    return suite.runpytest_subprocess("-q", "-p", "no:cacheprovider", *options)


def reported(suite: pytest.Pytester) -> dict[str, Any]:
    """What the last run with `REPORT` wrote for programs."""
    text = (suite.path / "out" / "report.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def findings(suite: pytest.Pytester) -> list[tuple[str, list[str], list[int]]]:
    """Id, tests and lines of each finding."""
    return [(one["id"], one["tests"], one["read"]["lines"]) for one in reported(suite)["findings"]]


def replace_line(path: Path, old: str, new: str) -> None:
    """Edit the one line that is *old*."""
    text = path.read_text(encoding="utf-8")
    assert text.count(f"{old}\n") == 1
    path.write_text(text.replace(f"{old}\n", f"{new}\n"), encoding="utf-8")
