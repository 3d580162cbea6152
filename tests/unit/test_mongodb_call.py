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


def numbered(number: int | None, session: bytes = b"s") -> dict[str, Any]:
    """An insert; with the same number in the same session it is an attempt of the same one."""
    number_of = {} if number is None else {"txnNumber": number}
    return {"insert": "c", "lsid": {"id": session}, **number_of}


@pytest.mark.parametrize(
    ("first", "second", "doubtful"),
    [
        (numbered(1), numbered(1), False),
        (numbered(1), numbered(2), True),
        (numbered(1), numbered(1, b"t"), True),
        (numbered(None), numbered(None), True),
        (numbered(None), numbered(1), True),
    ],
)
@pytest.mark.parametrize("lost", [True, False])
def test_only_an_attempt_of_the_same_number_ends_doubt(
    rules: Rules, first: dict[str, Any], second: dict[str, Any], *, doubtful: bool, lost: bool
) -> None:
    """A write that is repeated by its number was made once; the answer to another says nothing."""
    with antipode.scope() as scope:
        call = Call(rules)
        call.announce(dict(first), None)
        if lost:
            call.failed(CLOSED, AutoReconnect("reset"))
        else:
            call.took({"ok": 0.0, "code": 91})
        call.announce(dict(second), None)
        call.took(acknowledged())
        call.settle()
        assert scope.lineage.incomplete == (IN_DOUBT if doubtful else set())
        assert len(scope.lineage) == 1


def test_doubt_is_settled_one_by_one(rules: Rules) -> None:
    """Of two operations in doubt each needs an answer to itself."""
    for answered, doubtful in (((1,), True), ((2,), True), ((1, 2), False)):
        with antipode.scope() as scope:
            call = Call(rules)
            for number in (1, 2):
                call.announce(numbered(number), None)
                call.failed(CLOSED, AutoReconnect("reset"))
            for number in answered:
                call.announce(numbered(number), None)
                call.took(acknowledged())
            call.settle()
            assert scope.lineage.incomplete == (IN_DOUBT if doubtful else set())


def test_attempt_that_was_refused_leaves_the_doubt(rules: Rules) -> None:
    """A server that is no primary any more says nothing of what it did before."""
    with antipode.scope() as scope:
        call = Call(rules)
        call.announce(numbered(1), None)
        call.failed(CLOSED, AutoReconnect("reset"))
        call.announce(numbered(1), None)
        call.took({"ok": 0.0, "code": 10107})
        call.settle()
    assert scope.lineage.incomplete == IN_DOUBT


@pytest.mark.parametrize(("code", "doubtful"), [(11600, True), (237, True), (11000, False)])
def test_error_of_one_document_is_looked_into(rules: Rules, code: int, *, doubtful: bool) -> None:
    """A reply that is no error has those of its documents, and one may say an interruption."""
    errors = [{"index": 0, "code": 11000}, {"index": 1, "code": code}]
    with antipode.scope() as scope:
        call = Call(rules)
        call.announce(numbered(1), None)
        call.took(acknowledged(writeErrors=errors))
        call.settle()
    assert scope.lineage.incomplete == (IN_DOUBT if doubtful else set())
    assert len(scope.lineage) == 1


class Session:
    """Of the application's; its transaction's beginning was not seen, so it may have written."""

    options = SimpleNamespace(snapshot=False)


@pytest.mark.parametrize("vouched", [True, False])
def test_commit_is_in_doubt_unless_the_server_vouches(rules: Rules, *, vouched: bool) -> None:
    """Its second attempt has the first one's number; with the label nothing was committed."""
    commit = {"commitTransaction": 1, "lsid": {"id": b"s"}, "txnNumber": 3, "autocommit": False}
    labels = ["TransientTransactionError"] if vouched else ["UnknownTransactionCommitResult"]
    session = Session()
    with antipode.scope() as scope:
        call = Call(rules)
        call.announce(dict(commit), session)
        call.failed(CLOSED, AutoReconnect("reset"))
        call.announce(dict(commit), session)
        call.took({"ok": 0.0, "code": 251, "errorLabels": labels})
        call.settle()
    assert scope.lineage.incomplete == (set() if vouched else IN_DOUBT)


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
