"""What users would do instead of the barrier, strategy by strategy, with clients in memory."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmarks.post_notification._options import OURS, POST_STORAGES, STRATEGIES
from benchmarks.post_notification._report import CALLS
from benchmarks.post_notification._strategies import _retry as retry
from benchmarks.post_notification._strategies import (
    count_lines,
    lines_of,
    stores_of,
    strategy_class,
)
from benchmarks.post_notification._strategies._none import Knobs

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.post_notification._options import Strategy
    from benchmarks.post_notification._strategies._none import Unprotected

KNOBS = Knobs(timeout_s=1, sleep_s=0, stick_s=1)
PAIRS = [(name, store) for name in STRATEGIES for store in stores_of(name, POST_STORAGES)]


class Posts:
    """A client of one place, where every post says which."""

    def __init__(self, place: str) -> None:
        self.place = place

    def write(self, post_id: str, value: bytes | None) -> None:
        assert self.place == "writer"

    def read(self, post_id: str) -> bytes:
        return self.place.encode()


def made(name: Strategy) -> Unprotected:
    """A strategy of the embedded store, over clients in memory."""
    return strategy_class(name, "embedded")(Posts, KNOBS)


def answers(*versions: int) -> tuple[Callable[[], int], list[int]]:
    """Reads that give these versions, the last of them for ever; and what was read."""
    read: list[int] = []

    def fetch() -> int:
        read.append(versions[min(len(read), len(versions) - 1)])
        return read[-1]

    return fetch, read


@pytest.mark.parametrize(("name", "store"), PAIRS)
def test_each_pair_has_a_class_and_a_length(name: Strategy, store: str) -> None:
    """Whatever the command line offers exists; only no protection costs no line."""
    assert strategy_class(name, store)
    assert (lines_of(name, store, "embedded") == 0) == (name == "none")


def test_what_each_of_ours_found_is_said_in_words() -> None:
    """A strategy of the library without a sentence would end the run at its last line."""
    assert {*CALLS} == {*OURS}


def test_pairs_that_do_not_exist() -> None:
    """A file has no synchronous replication, and Redis no causal session."""
    synchronous = ("redis", "mysql", "mariadb", "postgresql", "mongodb")
    assert stores_of("synchronous", POST_STORAGES) == synchronous
    assert stores_of("session", POST_STORAGES) == ("mysql", "mariadb", "mongodb")


@pytest.mark.parametrize("name", ["none", "sleep", "artefact"])
def test_strategies_of_the_reader_leave_reads_to_the_replica(name: Strategy) -> None:
    """And put nothing into the notification."""
    strategy = made(name)
    assert strategy.write("a", b"1:") == {}
    assert strategy.read("a", {}) == b"reader"


def test_the_primary_is_read_across_the_link() -> None:
    """Always, and nothing has to travel for it."""
    strategy = made("primary")
    assert strategy.write("a", b"1:") == {}
    assert strategy.read("a", {}) == b"across"


def test_sticky_reads_go_to_the_primary_for_a_time() -> None:
    """The notification says when the write was; one of long ago is read at the replica."""
    strategy = made("sticky")
    carried = strategy.write("a", b"1:")
    assert strategy.read("a", carried) == b"across"
    assert strategy.read("a", {"written_s": time.time() - KNOBS.stick_s - 1}) == b"reader"


@pytest.mark.parametrize(
    ("value", "reads"),
    [(b"1:", [0, 0, 1]), (b"2:", [0, 1, 1, 3]), (None, [1, 2, 0])],
    ids=["new", "update", "delete"],
)
def test_retries_end_with_the_version_that_was_named(
    value: bytes | None, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No post and an older version are read again, and so is one that is to be gone."""
    monkeypatch.setattr(retry, "FIRST_S", 0)
    strategy = made("retry")
    notice = strategy.write("a", value)
    fetch, read = answers(*reads)
    assert strategy.follow(notice, fetch) == reads[-1]
    assert read == reads


def test_retries_are_bounded() -> None:
    """A version that never comes is given up when the time of any wait is."""
    strategy = strategy_class("retry", "embedded")(Posts, replace(KNOBS, timeout_s=0.01))
    fetch, _ = answers(1)
    with pytest.raises(TimeoutError):
        strategy.follow({"version": 2}, fetch)


def test_the_artefact_polls_for_the_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the replica has a row: an older version, and what is to be gone, is one."""
    found = iter([None, None, b"1:"])
    monkeypatch.setattr(Posts, "read", lambda *_: next(found))
    fetch, read = answers(1)
    strategy = made("artefact")
    assert strategy.follow({"id": "a", "kind": "update"}, fetch) == 1
    assert list(found) == []
    assert read == [1]
    assert strategy.follow({"id": "a", "kind": "delete"}, fetch) == 1
    monkeypatch.setattr(Posts, "read", lambda *_: None)
    bounded = strategy_class("artefact", "embedded")(Posts, replace(KNOBS, timeout_s=0.01))
    with pytest.raises(TimeoutError):
        bounded.follow({"id": "a", "kind": "new"}, fetch)


@pytest.mark.parametrize("store", POST_STORAGES)
def test_automatic_barriers_cost_the_wiring_alone(store: str) -> None:
    """The application writes, reads and follows as it does without protection."""
    auto = strategy_class("auto", store)
    unprotected = strategy_class("none", store)
    assert (auto.write, auto.read, auto.follow) == (
        unprotected.write,
        unprotected.read,
        unprotected.follow,
    )


def test_lines_are_those_with_code() -> None:
    """No blank line, comment, docstring or import counts; each line of a long statement does."""
    source = '''
    class Sleep(Unprotected):
        """Hopes
        for the best."""

        # Nobody knows how long.
        SECONDS = 1

        def follow(self, notice, fetch):
            """Sleep."""
            import time

            nap(  # long
                self.SECONDS,
            )
            return fetch()
    '''
    assert count_lines(source) == 7


def test_no_strategy_but_the_barrier_loads_the_library() -> None:
    """Their classes, and the plain clients, work where the core was never imported."""
    names = [name for name in STRATEGIES if name not in (*OURS, "synchronous")]
    code = (
        "import sys\n"
        "from benchmarks.post_notification._strategies import strategy_class\n"
        f"for name in {names!r}: strategy_class(name, 'mongodb')\n"
        "assert 'antipode' not in sys.modules, 'the library was imported'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
