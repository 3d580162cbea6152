"""What is known of the names of a PostgreSQL database: for how long, and what ends it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from antipode_shims.postgresql import _catalogue as module
from antipode_shims.postgresql._catalogue import FRESH_S, Catalogue, functions_sql, writing_sql
from antipode_shims.postgresql._look import Refused, converse

READ, CALL = "SELECT a FROM t", "SELECT int4range(1, 2)"
NAMES = frozenset({"int4range"})


class Server:
    """Answers questions, and counts them.

    Attributes:
        named: what the application has made that may write.
        now_s: what time it is.
    """

    def __init__(self) -> None:
        self.named: list[dict[str, str | None]] = []
        self.asked: list[str] = []
        self.now_s = 1000.0

    def monotonic(self) -> float:
        """Now."""
        return self.now_s

    def ask(self, sql: str) -> list[dict[str, str | None]]:
        """The rows of a question."""
        self.asked.append(sql)
        return self.named if "'call'" in sql else []


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """One whose time the catalogue goes by."""
    made = Server()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


def test_one_question_and_one_for_each_name(server: Server) -> None:
    """What is known is not asked again."""
    catalogue = Catalogue(frozenset())
    assert catalogue.may_write(READ, ()) is None
    for _ in range(2):
        converse(catalogue.ask(()), server.ask)
        assert catalogue.may_write(READ, ()) is False
    assert catalogue.may_write(CALL, NAMES) is None
    for _ in range(2):
        converse(catalogue.ask(NAMES), server.ask)
        assert catalogue.may_write(CALL, NAMES) is False
    assert len(server.asked) == 2


def test_it_is_asked_again_after_a_minute(server: Server) -> None:
    """Others may have changed the schema, for whichever of the questions."""
    catalogue = Catalogue(frozenset())
    converse(catalogue.ask(NAMES), server.ask)
    server.now_s += FRESH_S
    assert catalogue.may_write(CALL, NAMES) is False
    server.now_s += 1
    assert catalogue.may_write(CALL, NAMES) is None
    assert catalogue.may_write(READ, ()) is None
    server.named = [{"kind": "word", "name": "t"}]
    converse(catalogue.ask(()), server.ask)
    assert catalogue.may_write(READ, ()) is True
    assert catalogue.calls("int4range") is None


def test_a_change_ends_what_is_known_and_what_is_being_asked(server: Server) -> None:
    """An answer may be older than the change that came while it was on its way."""
    catalogue = Catalogue(frozenset())
    converse(catalogue.ask(()), server.ask)
    catalogue.forget()
    assert catalogue.may_write(READ, ()) is None
    steps = catalogue.ask(())
    next(steps)
    catalogue.forget()
    with pytest.raises(StopIteration):
        steps.send([])
    assert catalogue.may_write(READ, ()) is None


def test_a_refusal_leaves_it_unknown() -> None:
    """A user who may not see the catalogue knows nothing of it."""
    catalogue = Catalogue(frozenset())

    def refuse(sql: str) -> list[dict[str, str | None]]:
        raise Refused(sql)

    with pytest.raises(Refused):
        converse(catalogue.ask(NAMES), refuse)
    assert catalogue.may_write(CALL, NAMES) is None


def test_names_in_quotes_or_of_other_letters_are_not_asked_for(server: Server) -> None:
    """The encoding of the connection need not be that of the question: they may write."""
    catalogue = Catalogue(frozenset())
    odd = {'""', 'app.""', "grün"}
    converse(catalogue.ask(odd), server.ask)
    assert len(server.asked) == 1
    assert all(catalogue.may_write("", [name]) for name in odd)


def test_not_too_many_names_are_remembered(server: Server) -> None:
    """Statements that are made of random names fill no memory."""
    catalogue = Catalogue(frozenset())
    for number in range(3000):
        converse(catalogue.ask([f"f{number}"]), server.ask)
    known = [number for number in range(3000) if catalogue.calls(f"f{number}") is not None]
    assert 0 < len(known) <= 1024


def test_declared_functions_are_left_out() -> None:
    """By their name in each schema, or in one; as text, whatever they are called."""
    assert "('', 'app.price_of', 'log')" in writing_sql(frozenset({"log", "app.price_of"}))
    assert "('a'::name, 'b'::name)" in functions_sql(["app.b", "a", "b"])
