"""What users would do instead of the barrier, strategy by strategy, with clients in memory."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.post_notification._options import OURS, POST_STORAGES, STRATEGIES
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


def test_pairs_that_do_not_exist() -> None:
    """A file has no synchronous replication, and Redis no causal session."""
    assert stores_of("synchronous", POST_STORAGES) == ("redis", "mysql", "mariadb", "mongodb")
    assert stores_of("session", POST_STORAGES) == ("mysql", "mariadb", "mongodb")


@pytest.mark.parametrize("name", ["none", "sleep", "retry"])
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


def test_retries_end_when_a_post_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new post that is not there yet is read again."""
    monkeypatch.setattr(retry, "FIRST_S", 0)
    fetch, read = answers(0, 0, 1)
    assert made("retry").follow({"kind": "new"}, fetch) == 1
    assert read == [0, 0, 1]


@pytest.mark.parametrize("notice", [{"kind": "update"}, {"kind": "delete"}])
def test_retries_notice_no_older_version(notice: dict[str, Any]) -> None:
    """What was to be changed or deleted is found as it was, and taken for the answer."""
    fetch, read = answers(1)
    assert made("retry").follow(notice, fetch) == 1
    assert read == [1]


def test_retries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A post that never comes is given up, and a deleted one is not waited for."""
    monkeypatch.setattr(retry, "FIRST_S", 0)
    fetch, read = answers(0)
    assert made("retry").follow({"kind": "new"}, fetch) == 0
    assert len(read) == retry.ATTEMPTS
    fetch, read = answers(0)
    assert made("retry").follow({"kind": "delete"}, fetch) == 0
    assert read == [0]


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
