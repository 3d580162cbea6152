"""Which names a statement reads, and which of them may write, where replies show no positions."""

from __future__ import annotations

import time
from typing import Any

import pytest

from antipode_shims.mysql._clients.views import Listing, Views, names_in
from antipode_shims.mysql._position.flavor import Flavor, Refused, converse

#: What a server has, as ``SHOW CREATE TABLE`` says it.
VIEWS = {
    "`writing`": "CREATE VIEW `writing` AS select `app`.`fresh`() AS `n`",
    "`over`": "CREATE VIEW `over` AS select `w`.`n` AS `n` from `app`.`writing` `w`",
    "`app`.`writing`": "CREATE VIEW `writing` AS select `app`.`fresh`() AS `n`",
    "`counting`": "CREATE VIEW `counting` AS select count(0) AS `n` from `app`.`kept`",
}


def answer(ask: Any) -> list[dict[str, Any]]:
    """As a server answers: of some views nobody may see what they are made of."""
    if "information_schema.VIEWS" in ask.sql:
        return [{"name": name.strip("`").rpartition("`")[2]} for name in VIEWS]
    name = ask.sql.removeprefix("SHOW CREATE TABLE ")
    if name == "`secret`":
        raise Refused("SHOW VIEW command denied", number=1142)
    if name == "`x`":
        raise Refused("no such table", number=1146)
    if name in VIEWS:
        return [{"View": name, "Create View": VIEWS[name], "character_set_client": "utf8mb4"}]
    return [{"Table": name, "Create Table": "CREATE TABLE t (n int)"}]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        (b"SELECT * FROM a", {b"a"}),
        (b"select * from `a b` x, app . c AS y JOIN d ON d.n = x.n", {b"`a b`", b"app.c", b"d"}),
        (b"SELECT 'from x' FROM (a, b) /* from y */", {b"a", b"b"}),
        (b"SELECT * FROM (SELECT n FROM inner_one) d", {b"inner_one", b"SELECT"}),
        (b"SELECT * FROM information_schema.TABLES", set()),
        (b"SELECT 1", set()),
        (b"SELECT 1 FROM a STRAIGHT_JOIN b", {b"a", b"b"}),
        (b"TABLE a", {b"a"}),
    ],
)
def test_names_that_a_statement_reads(sql: bytes, names: set[bytes]) -> None:
    """Quoted or not, with a schema or without, in lists and joins; not in strings or comments."""
    assert names_in(sql) == names


@pytest.mark.parametrize(
    ("name", "writes"),
    [
        ("writing", True),
        ("over", True),
        ("secret", True),
        ("counting", False),
        ("kept", False),
        ("x", False),
    ],
)
def test_a_view_writes_that_may_call_what_writes(name: str, writes: bool) -> None:  # noqa: FBT001
    """Itself or by a view below it, or if nobody says; each name is asked about once."""
    views, sql = Views(), b"SELECT * FROM " + name.encode()
    converse(views.asking(views.unknown(sql), Flavor.MYSQL, frozenset()), answer)
    assert views.may_write(sql) is writes
    assert views.unknown(sql) == []
    views.forget()
    assert views.unknown(sql) == [name.encode()]


def test_what_only_reads_is_declared() -> None:
    """``readonly_functions`` of the client count in views, too."""
    views, sql = Views(), b"SELECT * FROM writing"
    declared = frozenset({b"app.fresh"})
    converse(views.asking(views.unknown(sql), Flavor.MYSQL, declared), answer)
    assert not views.may_write(sql)


def test_a_table_is_not_asked_about_where_the_views_are_known() -> None:
    """One question, for all connections, says which names are views; they alone are asked about."""
    listing, asked = Listing(), []

    def counting(ask: Any) -> Any:
        asked.append(ask.sql)
        return answer(ask)

    for _ in range(2):
        views = Views(listing)
        for name in (b"kept", b"app.writing"):
            sql = b"SELECT * FROM " + name
            converse(views.asking(views.unknown(sql), Flavor.MYSQL, frozenset()), counting)
            assert views.may_write(sql) is (name != b"kept")
            assert views.unknown(sql) == []
    assert [sql.split()[0] for sql in asked] == ["SELECT", "SHOW", "SHOW"]


def test_a_server_without_views_is_asked_once() -> None:
    """Until something is defined: then its views are asked for again."""
    views = Views(Listing())
    sql = b"SELECT * FROM kept"
    assert time.monotonic() >= views.listing.calm_until_s
    converse(views.asking(views.unknown(sql), Flavor.MYSQL, frozenset()), lambda _: [])
    assert time.monotonic() < views.listing.calm_until_s
    views.forget(made=False)
    assert views.unknown(sql) == []
    views.forget()
    assert time.monotonic() >= views.listing.calm_until_s
    assert views.unknown(sql) == [b"kept"]


def test_who_may_not_see_the_views_asks_about_each_name() -> None:
    """A refusal, or more views than are kept, says nothing of any name."""

    def refusing(ask: Any) -> Any:
        if "information_schema" in ask.sql:
            raise Refused("denied", number=1142)
        return answer(ask)

    def many(ask: Any) -> Any:
        listed = "information_schema" in ask.sql
        return [{"name": f"v{number}"} for number in range(1024)] if listed else answer(ask)

    for answers in (refusing, many):
        views, sql = Views(Listing()), b"SELECT * FROM writing, kept"
        converse(views.asking(views.unknown(sql), Flavor.MYSQL, frozenset()), answers)
        assert views.may_write(sql)
        assert not views.may_write(b"SELECT * FROM kept")
