"""When the lineage of rows is set in a session of PostgreSQL, and when that is believed to hold."""

from __future__ import annotations

import contextlib
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

import antipode
from antipode import Lineage, WriteId
from antipode_shims.postgresql._clients.tap import Session
from antipode_shims.postgresql._endpoint import ServerSettings
from antipode_shims.postgresql._instrument import InstrumentedShim
from antipode_shims.postgresql._statements import meaning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_shims.postgresql._stored.lineages import RowLineages

CAUSE = WriteId("elsewhere", "log", 7, written_hour=490_000)
#: It opens its transaction, or its lineage follows one that was set: no server is asked before.
WRITE = "INSERT INTO carts VALUES (1)"
_ASKS_FOR_VIEWS = "WITH RECURSIVE"


class Sent:
    """A connection, and the settings that went over it."""

    def __init__(self, lineages: RowLineages) -> None:
        self.lineages = lineages

    def run(self, sql: str, before: Session, after: Session, *, failed: bool = False) -> list[str]:
        """Run a statement; the settings that went with it."""
        found = meaning(sql)
        opens = before is Session.IDLE
        steps = self.lineages.before(sql, found, before, opens=opens, piped=False, pid=1)
        sent = settings_among(steps)
        if opens and (setting := self.lineages.begins()):
            sent.append(setting)
        unknown: Any = None
        self.lineages.after(
            [], after, failed=failed, busy=False, pid=1, spoken=None, escape=unknown
        )
        return sent


def settings_among(steps: Any) -> list[str]:
    """What is sent before a statement; a server that is asked for views has none."""
    sent: list[str] = []
    answer: Any = None
    with contextlib.suppress(StopIteration):
        while True:
            step = steps.send(answer)
            asked = step.startswith(_ASKS_FOR_VIEWS)
            answer = [] if asked else None
            sent += [] if asked else [step]
    return sent


@pytest.fixture
def sent() -> Iterator[Sent]:
    """One whose tables nobody has asked about, within a request."""
    settings = ServerSettings.of({"host": "127.0.0.1"})
    with closing(InstrumentedShim("posts", settings)) as shim:
        shim.store_lineages(("orders",))
        assert shim.stored is not None
        with antipode.scope(Lineage([CAUSE])):
            yield Sent(shim.stored.connection())


def test_a_setting_is_local_to_its_transaction(sent: Sent) -> None:
    """It is sent once, and again in the next, however the first one ended."""
    for end in (WRITE, "COMMIT", "ROLLBACK"):
        first = sent.run(WRITE, Session.IDLE, Session.OPEN)
        assert len(first) == 1
        assert first[0].startswith("SET LOCAL antipode.lineage = '")
        assert sent.run(WRITE, Session.OPEN, Session.OPEN) == []
        sent.run(end, Session.OPEN, Session.IDLE)  # An insert ends one where its connection does.


def test_a_chained_transaction_is_another(sent: Sent) -> None:
    """There is no moment at which none is open."""
    sent.run(WRITE, Session.IDLE, Session.OPEN)
    sent.run("COMMIT AND CHAIN", Session.OPEN, Session.OPEN)
    assert sent.run("SELECT place_order()", Session.OPEN, Session.OPEN) != []


@pytest.mark.parametrize("back", ["ROLLBACK TO a", "SELECT 1; ROLLBACK TO a", "SELECT 1 / 0"])
def test_a_savepoint_brings_an_older_setting_back(sent: Sent, back: str) -> None:
    """Which is not known any more: the next write sends it anew."""
    sent.run(WRITE, Session.IDLE, Session.OPEN)
    if back.startswith("SELECT 1 /"):
        sent.run(back, Session.OPEN, Session.FAILED, failed=True)
        back = "ROLLBACK TO a"
        sent.run(back, Session.FAILED, Session.OPEN)
    else:
        sent.run(back, Session.OPEN, Session.OPEN)
    assert len(sent.run(WRITE, Session.OPEN, Session.OPEN)) == 1
    assert sent.run(WRITE, Session.OPEN, Session.OPEN) == []
