"""What is known of a connection to PostgreSQL: for how long, and what a transaction's reads see."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import ConfigurationError, Status, WriteId
from antipode.shim import Observation, Verdict
from antipode_shims.postgresql._clients import tap as module
from antipode_shims.postgresql._clients.tap import FRESH_S, Read, Session, Tap
from antipode_shims.postgresql._endpoint import ServerSettings
from antipode_shims.postgresql._look import SAMPLE, Backend, Refused, converse
from antipode_shims.postgresql._shim.base import BasePostgreSQLShim
from antipode_shims.postgresql._statements import BEGINS, READS
from tests.unit._floors import floor_of

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITE = WriteId("posts", "7/1-0", 100)
SEEN = Observation("server", {WRITE: Status.VISIBLE})
STATE = {
    "recovering": "t",
    "position": "0/64",
    "timeline": "1",
    "system": "7",
    "started": "1",
    "receiving": "t",
    "received": "1",
    "history": None,
    "next": None,
    "rights": "files",
    "files": "t",
    "function": "f",
    "stream": "f",
}


class Timed:
    """A connection's tap, and what time it is."""

    def __init__(self, shim: BasePostgreSQLShim) -> None:
        self.tap, self.now_s = Tap(shim), 1000.0

    def monotonic(self) -> float:
        """Now."""
        return self.now_s

    def begin(self, held: Any = None) -> None:
        """Begin a transaction, which *held* may hold back."""
        self.tap.starts("BEGIN", Session.IDLE, opens=False)
        if held is not None:
            assert self.tap.judge(held, BEGINS, Session.IDLE) is Verdict.PASS
        self.tap.settled(Session.OPEN, failed=False, tag="BEGIN", standby=True)


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Timed]:
    """One whose server showed the write now."""
    settings = ServerSettings.of({"host": "127.0.0.1"})
    with antipode.scope(), closing(BasePostgreSQLShim("posts", settings)) as shim:
        made = Timed(shim)
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=made.monotonic))
        made.tap.passed(floor_of("posts", WRITE), SEEN)
        yield made


def test_what_was_seen_long_before_a_transaction_shows_it_nothing(timed: Timed) -> None:
    """Behind a pooler another server may have begun it."""
    for later_s, verdict in ((FRESH_S - 1, Verdict.PASS), (FRESH_S, Verdict.ASK)):
        timed.now_s += later_s
        timed.begin()
        assert timed.tap.judge(floor_of("posts", WRITE), READS, Session.OPEN) is verdict
        timed.tap.starts("ROLLBACK", Session.OPEN, opens=False)
        timed.tap.settled(Session.IDLE, failed=False, tag="ROLLBACK", standby=True)


def test_what_let_a_transaction_begin_lets_it_read(timed: Timed) -> None:
    """However much later: its snapshot is not older than its beginning."""
    later = WriteId("posts", "7/1-0", 200)
    timed.tap._server = "server"
    held = floor_of("posts", later, proved_on="server", clock=timed.tap.shim.clock)
    timed.begin(held)
    timed.now_s += 10 * FRESH_S
    assert timed.tap.judge(held, READS, Session.OPEN) is Verdict.PASS


def test_a_snapshot_that_is_taken_during_the_poll_is_noticed(timed: Timed) -> None:
    """Whoever takes it, after whichever question: the read passes only if that is later."""
    ended = []
    for taken in range(5):
        asked: list[str] = []

        def answer(sql: str, taken: int = taken, asked: list[str] = asked) -> Any:
            unread = "t" if len(asked) <= taken else "f"
            asked.append(sql)
            return [{"unread": unread}] if "pg_stat_activity" in sql else [STATE]

        steps = timed.tap.look_outside(floor_of("posts", WRITE), Backend(7, "127.0.0.1", 5))
        timed.tap.shim._rights = None
        try:
            assert converse(steps, answer).statuses == {WRITE: Status.VISIBLE}
        except Read:
            ended.append("refused")
        else:
            ended.append("passed")
            assert not any("replay_lsn" in sql for sql in asked[taken:])
    assert sorted(set(ended)) == ["passed", "refused"]


@pytest.mark.parametrize(
    ("called", "advice"),
    [
        (
            "SELECT Price_Of(a) FROM t",
            "calls price_of(), .* declare it: readonly_functions=['price_of']",
        ),
        ('SELECT app."Price"(a) FROM t', "calls a function in quotes, .* call it without"),
    ],
)
def test_what_is_said_of_a_function_that_may_write(
    timed: Timed, caplog: pytest.LogCaptureFixture, called: str, advice: str
) -> None:
    """What can be declared, and never a name that would stand for all that are in quotes."""

    def answer(sql: str) -> list[dict[str, str | None]]:
        if sql == SAMPLE:
            raise Refused(sql)
        return [{"name": "price_of"}] if "price_of" in sql else []

    timed.tap.starts(called, Session.IDLE, opens=False)
    steps = timed.tap.settled(Session.IDLE, failed=False, tag="SELECT 1", standby=False)
    assert steps is not None
    converse(steps, answer)
    begins, _, ends = advice.partition(" .* ")
    assert begins in caplog.text
    assert ends in caplog.text
    assert '""' not in caplog.text


def test_what_a_function_may_have_written_is_covered(timed: Timed) -> None:
    """By a position that says no more than that: there may have been no write."""
    sample = {"flushed": "0/64", "inserted": "0/64", "started": "1", "synchronous": "on"}
    writes = {"name": "price_of", "kind": "call"}  # By the catalogue.

    def answer(_: str) -> list[dict[str, str | None]]:
        return [{**STATE, "recovering": "f", **sample, **writes}]

    timed.tap.starts("SELECT price_of(a) FROM t", Session.IDLE, opens=False)
    steps = timed.tap.settled(Session.IDLE, failed=False, tag="SELECT 1", standby=False)
    assert steps is not None
    converse(steps, answer)
    (write,) = antipode.current()
    assert (write.version, write.covering) == (100, True)


@pytest.mark.parametrize("names", ["price_of", ['""'], ['"Price"'], ["price_of()"]])
def test_what_cannot_be_declared(names: Any) -> None:
    """One text, and names in quotes, of which no statement would be told from another."""
    settings = ServerSettings.of({"host": "127.0.0.1"})
    with pytest.raises(ConfigurationError, match="without quotes"):
        BasePostgreSQLShim("posts", settings, readonly_functions=names)
