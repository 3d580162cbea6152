"""What an instrumented MongoDB client makes of commands and replies, without a server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from bson import Timestamp
from pymongo import MongoClient
from pymongo.errors import AutoReconnect, InvalidOperation

import antipode
from antipode import ConfigurationError
from antipode.shim import Incomplete
from antipode_shims.mongodb import instrument_client, uninstrument_client
from antipode_shims.mongodb._clients.call import Call, Rules
from antipode_shims.mongodb._position.reply import ASK, INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Iterator

IN_DOUBT = {Incomplete("posts", "in_doubt")}
OPEN, CLOSED = SimpleNamespace(closed=False), SimpleNamespace(closed=True)


@pytest.fixture
def rules() -> Iterator[Rules]:
    """Of a client that never connects; its set is known."""
    one: Any = MongoClient("127.0.0.1", 1, connect=False, directConnection=True)
    with one:
        instrument_client(one, datastore="posts")
        held: Rules = one._antipode.rules
        held.shim.set_name = "rs"
        yield held
        uninstrument_client(one)


def acknowledged(version: int = 1, **more: Any) -> dict[str, Any]:
    """The reply to a write of one document."""
    return {"ok": 1.0, "n": 1, "opTime": {"ts": Timestamp(7, version), "t": 3}, **more}


def test_later_position_of_a_log_stands_for_the_earlier(rules: Rules) -> None:
    """However many batches an operation has."""
    with antipode.scope() as scope:
        call = Call(rules)
        for version in (1, 2, 3):
            call.announce({"insert": "c"}, None)
            call.took(acknowledged(version))
        call.settle()
        (entry,) = scope.lineage
        assert (entry.key, entry.version) == ("rs.3", 7 << 32 | 3)


def test_only_silent_replies_are_asked(rules: Rules) -> None:
    """``insert`` tells by itself; ``findAndModify`` is asked, and what it tells is taken out."""
    call = Call(rules)
    command: dict[str, Any] = {"insert": "c"}
    call.announce(command, None)
    assert not ASK.keys() & command.keys()
    command = {"findAndModify": "c"}
    call.announce(command, None)
    assert ASK.keys() <= command.keys()
    reply = acknowledged() | dict.fromkeys(ASK)
    call.took(reply)
    assert not ASK.keys() & reply.keys()


@pytest.mark.parametrize("code", sorted(INTERRUPTED))
def test_what_was_interrupted_is_in_doubt(rules: Rules, code: int) -> None:
    """A server that stopped in the middle may have written, whichever code says so."""
    with antipode.scope() as scope:
        call = Call(rules)
        call.announce({"update": "c"}, None)
        call.took({"ok": 0.0, "code": code})
        call.settle()
    assert scope.lineage.incomplete == IN_DOUBT


def test_doubt_needs_a_lost_connection(rules: Rules) -> None:
    """An error of the client's own, or of a connection that is sound, sent nothing."""
    for connection, error, doubtful in (
        (CLOSED, AutoReconnect("reset"), True),
        (CLOSED, KeyboardInterrupt(), True),
        (OPEN, AutoReconnect("not primary"), False),
        (CLOSED, InvalidOperation("encode"), False),
    ):
        with antipode.scope() as scope:
            call = Call(rules)
            call.announce({"insert": "c"}, None)
            call.failed(connection, error)
            call.settle_failed()
            assert scope.lineage.incomplete == (IN_DOUBT if doubtful else set())


def test_second_attempt_settles_the_first(rules: Rules) -> None:
    """A write that is repeated by its number was made once."""
    with antipode.scope() as scope:
        call = Call(rules)
        call.announce({"insert": "c", "txnNumber": 1}, None)
        call.failed(CLOSED, AutoReconnect("reset"))
        call.announce({"insert": "c", "txnNumber": 1}, None)
        call.took(acknowledged())
        call.settle()
        assert not scope.lineage.incomplete
        assert len(scope.lineage) == 1


def test_reply_that_tells_nothing_is_unsampled(rules: Rules) -> None:
    """The write exists; its position is missing, and the lineage says so."""
    for reply in ({"ok": 1}, {"ok": 1, "opTime": "?"}, {"ok": 1, "opTime": {"ts": 1, "t": "x"}}):
        with antipode.scope() as scope:
            call = Call(rules)
            call.announce({"findAndModify": "c"}, None)
            call.took(dict(reply))
            call.settle()
            assert scope.lineage.incomplete == {Incomplete("posts", "unsampled")}


def test_what_cannot_be_understood_is_unsampled(
    rules: Rules, caplog: pytest.LogCaptureFixture
) -> None:
    """A failure of the library's own neither breaks the command nor drops a dependency."""
    with antipode.scope() as scope:
        call = Call(rules)
        call.announce({}, None)
        assert scope.lineage.incomplete == {Incomplete("posts", "unsampled")}
        assert "not understood" in caplog.text


def test_servers_without_positions_are_refused(rules: Rules) -> None:
    """A mongos, and a server that is no member of a set."""
    rules.check(SimpleNamespace(is_repl=True, is_mongos=False))
    for mongos, message in ((True, "mongos"), (False, "--replSet")):
        with pytest.raises(ConfigurationError, match=message):
            rules.check(SimpleNamespace(is_repl=False, is_mongos=mongos))
