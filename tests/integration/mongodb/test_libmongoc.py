"""Instrumented clients of libmongoc, on a real replica set."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance._agents import command
from tests.integration._dry_run import dry_run_into, lints

from ._clients import SET, failing, plain_client, position
from .test_java_client import elected_again

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import MongoDBTopology

pytestmark = [pytest.mark.slow, pytest.mark.store("mongodb")]

LAG_MS = 200
NEVER_MS = 5_000
#: What each check of cpp/tests/mongodb/client_program.cc claims, and the secondary's lag.
CHECKS = {
    "writes": 0,
    "nothing": 0,
    "bulk": 0,
    "repeated": 0,
    "doubtful": 0,
    "transactions": 0,
    "lost_commit": 0,
    "held": LAG_MS,
    "pooled": LAG_MS,
    "snapshots": 0,
    "late": NEVER_MS,
    "majority": NEVER_MS,
    "unseen": 0,
    "elected": 0,
    "gone": 0,
    "forked": LAG_MS,
}
#: Commands that the primary fails once, and how.
FAILURES: dict[str, tuple[str, dict[str, Any]]] = {
    "repeated": ("insert", {"closeConnection": True}),
    "doubtful": ("insert", {"closeConnection": True}),
    "lost_commit": ("commitTransaction", {"errorCode": 50}),
}


@contextmanager
def started(topology: MongoDBTopology, check: str) -> Iterator[subprocess.Popen[str]]:
    """The program in front of two documents, and of a primary that may fail once."""
    with plain_client(topology.primary) as plain:
        plain.app.notes.drop()
        plain.app.notes.insert_many([{"_id": 0, "n": 0}, {"_id": 1, "n": 0}])
    topology.wait_replicated()
    topology.set_lag(CHECKS.get(check, 0))
    servers = [f"{host}:{port}" for host, port in (topology.primary, topology.replica)]
    words = [Path(command("cpp")[0]).with_name("antipode_mongodb_client"), *servers, check]
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        if check in FAILURES:
            name, how = FAILURES[check]
            stack.enter_context(failing(topology.primary, name, **how))
        popen = subprocess.Popen(words, text=True, stdin=pipe, stdout=pipe, stderr=pipe)
        running = stack.enter_context(popen)
        stack.callback(running.kill)
        yield running


def ended(running: subprocess.Popen[str], given: str = "") -> str:
    """What it prints until it ends, and has found what it claims."""
    said, errors = running.communicate(given, timeout=60)
    assert running.returncode == 0, errors
    return said


@pytest.mark.parametrize("check", sorted({*CHECKS} - {"elected"}))
def test_client(antipode_mongodb: MongoDBTopology, check: str) -> None:
    """Calls record their writes with positions or a mark, and reads wait as they must."""
    with started(antipode_mongodb, check) as running:
        ended(running)


def test_what_leaves_within_a_transaction_is_a_lint(
    antipode_mongodb: MongoDBTopology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dry run says so while a transaction that wrote is open; so of a read that cannot see it."""
    for name, value in dry_run_into(tmp_path).items():
        monkeypatch.setenv(name, value)
    with started(antipode_mongodb, "uncommitted") as running:
        ended(running)
    assert lints(tmp_path) == [("in-transaction", "posts"), ("read-before-commit", "posts")]


def test_a_new_term_is_known_from_its_first_write(antipode_mongodb: MongoDBTopology) -> None:
    """A primary that was elected again is asked, where a reply tells no term."""
    with started(antipode_mongodb, "elected") as running:
        assert running.stdout is not None
        running.stdout.readline()
        elected_again(antipode_mongodb)
        logs = ended(running, "\n\n").split()
    term, _ = position(antipode_mongodb.primary)
    assert {SET, f"{SET}.{term}"} & {*logs}
