"""What texts of statements say of tables whose rows have stored lineages."""

from __future__ import annotations

import pytest

from antipode_shims.postgresql._stored.mentions import mentions
from antipode_shims.postgresql._stored.sought import Spoken, sought, spelled
from antipode_shims.postgresql._stored.table import BOOLEAN, UUID, Table

NAMES = ("orders", "shop.items")
PAIRS = Table("public", "pairs", 1, ("a", "the b"), (1, 2), (23, 25))


@pytest.mark.parametrize(
    ("sql", "every", "sources"),
    [
        ("SELECT * FROM orders", {"orders": 1}, {"orders": 1}),
        ('SELECT "orders"."id" FROM "orders"', {"orders": 1}, {"orders": 1}),
        ("SELECT orders.id FROM public.ORDERS", {"orders": 1}, {"orders": 1}),
        ("SELECT * FROM orders FOR UPDATE OF orders", {"orders": 1}, {"orders": 1}),
        ("SELECT * FROM my_orders, orders_ap, orders$", {}, {}),
        ("SELECT 'orders' -- orders\n/* orders */", {}, {}),
        ("/* a */ UPDATE orders SET id = 1", {"orders": 1}, {}),
        ("SELECT E'it\\'s' FROM orders WHERE a <> 'y'", {"orders": 1}, {"orders": 1}),
        ("SELECT 'a\\b' FROM orders WHERE a <> 'y'", {"orders": 1}, {"orders": 1}),
        ("SELECT $$it's$$ FROM orders WHERE a <> 'y'", {"orders": 1}, {"orders": 1}),
        ("""SELECT 1 AS "it's" FROM orders WHERE a <> 'y'""", {"orders": 1}, {"orders": 1}),
        ("DO $$ BEGIN DELETE FROM orders; END $$", {"orders": 1}, {"orders": 1}),
        ("UPDATE orders SET id = 1 WHERE orders.id = 2", {"orders": 1}, {}),
        ("DELETE FROM ONLY orders USING items", {"orders": 1, "shop.items": 1}, {"shop.items": 1}),
        ('INSERT INTO "public"."orders" SELECT * FROM orders', {"orders": 2}, {"orders": 1}),
    ],
)
def test_mentions(sql: str, every: dict[str, int], sources: dict[str, int]) -> None:
    """Tables, not what has their names within it; without the table that is written to."""
    said = mentions(sql, NAMES)
    assert (said.all, said.sources) == (every, sources)


@pytest.mark.parametrize(
    ("sql", "own"),
    [
        ("INSERT INTO orders VALUES (1) RETURNING id", True),
        ("insert into orders values (1) on conflict (id) do nothing returning id", False),
        ("INSERT INTO orders SELECT * FROM items RETURNING id", False),
        ("UPDATE orders SET a = 1 RETURNING id", False),
        ("INSERT INTO orders VALUES (1); DELETE FROM orders RETURNING id", False),
        ("INSERT INTO orders VALUES (1) RETURNING id; ", True),
    ],
)
def test_what_an_insert_returns_is_its_own(sql: str, *, own: bool) -> None:
    """Unless other rows may be among it."""
    assert mentions(sql, NAMES).own == own


def test_what_ends_a_setting() -> None:
    """By its text."""
    assert mentions("DISCARD ALL", ()).forgets
    assert mentions("reset all", ()).forgets
    assert mentions("SET antipode.lineage = ''", ()).forgets
    assert mentions("rollback to savepoint a", ()).back
    assert mentions("/* a */ ROLLBACK TO a", ()).back
    assert mentions("SELECT 1; ROLLBACK TO a", ()).back
    assert not mentions("SELECT 1", ()).forgets


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("""a = 1 AND "the b" = 'x'""", [(b"1", b"x")]),
        ("""p.a = '01' AND p."the b" = 'it''s'""", [(b"1", b"it's")]),
        ("""a IN (1, -2) AND "the b" IN ('x')""", [(b"1", b"x"), (b"-2", b"x")]),
        ("""a = $1::int AND "the b" = $2""", [(b"7", b"y")]),
        ("""a = $3 AND "the b" = 'x'""", []),
        ("""a = 1""", []),
        ("""a = 1 AND "the b" = E'x'""", []),
        ("""a > 1 AND "the b" = 'x'""", []),
        ("""a = 1 AND 'the b' = 'x'""", []),
        ("""a = (SELECT 1) AND "the b" = 'x'""", []),
    ],
)
def test_keys_that_are_sought(sql: str, keys: list[tuple[bytes, ...]]) -> None:
    """All columns of a key, by = or IN, as the server spells them."""
    text = f"SELECT * FROM pairs AS p WHERE {sql}"  # noqa: S608 - for no server
    spoken = Spoken(text.encode(), (b"\0\0\0\7", b"y", None), (True, False, False))
    assert sought(spoken, PAIRS) == keys


def test_no_text_is_too_odd() -> None:
    """It ends anywhere, or has bytes of another encoding."""
    for text in (b"SELECT a =", b"a IN (", b'a = 1 AND "the b" = \'x', b"\xff = $9", b"a = $1"):
        sought(Spoken(text), PAIRS)


@pytest.mark.parametrize(
    ("value", "kind", "binary", "text"),
    [
        (b"T", BOOLEAN, False, b"true"),
        (b"\0", BOOLEAN, True, b"false"),
        (b"maybe", BOOLEAN, False, None),
        (b"x", 23, False, None),
        (b"\xff\xfe", 21, True, b"-2"),
        (
            b"{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}",
            UUID,
            False,
            b"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ),
        (b"x", UUID, False, None),
    ],
)
def test_spellings(value: bytes, kind: int, *, binary: bool, text: bytes | None) -> None:
    """As the server has a value in text."""
    assert spelled(value, kind, binary=binary) == text
