"""A SELECT that also returns lineages: which statements, and that the others stay as they are."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antipode_shims.mysql._stored.rewrite import Tables

TABLES = Tables(["posts", "shop.orders"])


@pytest.mark.parametrize(
    ("sql", "rewritten"),
    [
        ("SELECT * FROM posts", "SELECT *, posts.`_ap` FROM posts"),
        (
            "select a, b from `posts` where a = 1",
            "select a, b, `posts`.`_ap` from `posts` where a = 1",
        ),
        ("SELECT p.a FROM posts p", "SELECT p.a, p.`_ap` FROM posts p"),
        (
            "SELECT p.a FROM blog.posts AS p FOR UPDATE",
            "SELECT p.a, p.`_ap` FROM blog.posts AS p FOR UPDATE",
        ),
        ("SELECT a FROM blog.Posts", "SELECT a, blog.Posts.`_ap` FROM blog.Posts"),
        ("SELECT a FROM posts LIMIT 3", "SELECT a, posts.`_ap` FROM posts LIMIT 3"),
        ("SELECT a FROM posts ORDER BY 1", "SELECT a, posts.`_ap` FROM posts ORDER BY 1"),
        (
            "SELECT p.a, o.b FROM posts p LEFT JOIN shop.orders o ON o.id = p.id",
            "SELECT p.a, o.b, p.`_ap`, o.`_ap` FROM posts p LEFT JOIN shop.orders o ON o.id = p.id",
        ),
        ("SELECT a FROM users, posts", "SELECT a, posts.`_ap` FROM users, posts"),
        (
            "SELECT a FROM users JOIN posts USING (id) JOIN tags t ON t.p = posts.id",
            "SELECT a, posts.`_ap` FROM users JOIN posts USING (id) JOIN tags t ON t.p = posts.id",
        ),
        (
            "SELECT (SELECT n FROM names) AS n, 'from x' FROM posts",
            "SELECT (SELECT n FROM names) AS n, 'from x', posts.`_ap` FROM posts",
        ),
        (
            "SELECT a /* from here */ FROM posts -- , posts\nWHERE a IN (SELECT b)",
            "SELECT a /* from here */, posts.`_ap` FROM posts -- , posts\nWHERE a IN (SELECT b)",
        ),
        (
            "SELECT a FROM posts USE INDEX (i) WHERE 1",
            "SELECT a, posts.`_ap` FROM posts USE INDEX (i) WHERE 1",
        ),
        (
            "SELECT a FROM posts PARTITION (p0) AS p",
            "SELECT a, p.`_ap` FROM posts PARTITION (p0) AS p",
        ),
        ("SELECT a FROM posts;", "SELECT a, posts.`_ap` FROM posts;"),
    ],
)
def test_rows_come_with_their_lineages(sql: str, rewritten: str) -> None:
    """The column of each named table, by the name that the statement has for it."""
    found = TABLES.select(sql.encode())
    assert found is not None
    assert found.sql.decode() == rewritten
    assert found.columns == rewritten.count("`_ap`")


@pytest.mark.parametrize(
    ("sql", "side", "key"),
    [
        ("SELECT a FROM posts", "`posts_ap`", "posts.`id`"),
        ("SELECT a FROM `po`.`posts` p", "`po`.`posts_ap`", "p.`id`"),
        ("SELECT a FROM blog.Posts FOR JOIN", "`blog`.`Posts_ap`", "blog.Posts.`id`"),
        ("SELECT a FROM posts FOR UPDATE", "`posts_ap`", "posts.`id`"),
        ("SELECT a FROM posts LOCK IN SHARE MODE", "`posts_ap`", "posts.`id`"),
    ],
)
def test_side_tables_are_looked_at(sql: str, side: str, key: str) -> None:
    """Beside the row's table, by the row's key; with a lock where the statement has one."""
    found = TABLES.select(sql.encode(), {"posts": ("id",)})
    assert found is not None
    looks = re.findall(r"\(SELECT \S+ FROM (\S+) _antipode WHERE (.*)\) FROM ", found.sql.decode())
    ((place, where),) = looks
    assert (place, found.columns) == (side, 1)
    assert f"CAST({key} AS BINARY)" in where
    assert ("LOCK IN SHARE MODE" in where) == ("UPDATE" in sql or "LOCK" in sql)


def test_both_kinds_in_one_statement() -> None:
    """Each table as it was migrated."""
    found = TABLES.select(b"SELECT a FROM posts p, shop.orders o", {"shop.orders": ("x", "y")})
    assert found is not None
    assert found.columns == 2
    assert b", p.`_ap`, (SELECT" in found.sql
    assert b"CAST(o.`x` AS BINARY)" in found.sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "SELECT a FROM users",
        "SELECT 'a from posts'",
        "SELECT COUNT(*) FROM posts",
        "SELECT a, MAX(b) FROM posts",
        "SELECT DISTINCT a FROM posts",
        "SELECT a FROM posts GROUP BY a",
        "SELECT a FROM posts UNION SELECT a FROM users",
        "SELECT a INTO @a FROM posts",
        "SELECT a FROM (SELECT a FROM posts) AS p",
        "SELECT a FROM orders",
        "SELECT a FROM users WHERE id IN (SELECT id FROM posts)",
        "INSERT INTO posts SELECT a FROM posts",
        "WITH p AS (SELECT a FROM posts) SELECT a FROM p",
        "EXPLAIN SELECT a FROM posts",
        "SELECT a FROM posts; SELECT b FROM posts",
        "(SELECT a FROM posts)",
        "",
    ],
)
def test_what_shows_no_rows_of_the_tables_stays(sql: str) -> None:
    """Aggregates, unions, subqueries, other tables and other statements."""
    assert TABLES.select(sql.encode()) is None


KEYS = {"posts": {"id": ""}, "shop.orders": {"shop": "", "number": "utf8mb4"}}


@pytest.mark.parametrize(
    ("where", "sought"),
    [
        ("posts WHERE id = 1", ["1"]),
        ("blog.Posts AS p WHERE p.`ID` = -1 OR (p.id = 'a b' AND n = 2)", ["-1", "'a b'"]),
        ("posts WHERE id = _binary X'00' LIMIT 1", ["_binary X'00'"]),
        ("posts WHERE id > 1 AND id <> 2 AND id != 3 AND id = n + 4", []),
        ("posts WHERE a = (SELECT a FROM b WHERE id = 1) AND (id = 2)", ["2"]),
        ("users WHERE id = 1", []),
        ("posts WHERE id IN (1, -2, 'c', n, X'00') AND n IN (4)", ["1", "-2", "'c'", "X'00'"]),
        ("posts WHERE id NOT IN (1) AND id IN (SELECT id FROM b WHERE id = 1)", []),
        ("posts WHERE id IN (1", ["1"]),
        ("posts WHERE id IN", []),
        ("shop.orders WHERE shop = 1 AND number IN (2, 3)", ["1 2", "1 3"]),
        (f"posts WHERE id = '{'x' * 9000}'", []),
        ("shop.orders WHERE number = 'n' AND shop = 1", ["1 'n'"]),
        ("shop.orders WHERE number = 'n'", []),
        (
            "shop.orders WHERE shop = 1 AND number = 'm' OR shop = 2 AND number = 'n'",
            ["1 'm'", "1 'n'", "2 'm'", "2 'n'"],
        ),
        ("posts, shop.orders WHERE id = 1 AND shop = 2 AND number = 3", ["1", "2 3"]),
        ("posts WHERE " + " OR ".join(["id = 1"] * 999), ["1"] * 100),
    ],
)
def test_what_is_sought(where: str, sought: list[str]) -> None:
    """The keys with which a statement compares, all columns of each; nothing of subqueries."""
    found = TABLES.sought(f"SELECT * FROM {where}".encode(), KEYS)  # noqa: S608 - pure
    rows = [(table, key) for table, keys in found for key in keys]
    assert [" ".join(part.sent.decode() for part in key) for _, key in rows] == sought
    for table, key in rows:
        assert [part.charset for part in key] == list(KEYS[table].values())


def test_mentions() -> None:
    """By whole words, whatever the case: what may be about a table is looked at."""
    assert TABLES.mentioned(b"insert into POSTS values (1)")
    assert TABLES.mentioned(b"update `orders` set a = 1")
    assert not TABLES.mentioned(b"select * from blogposts, posts2")


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_no_text_crashes_it(sql: bytes) -> None:
    """Whatever is sent: a rewritten statement only ever gained columns."""
    found = TABLES.select(b"SELECT " + sql)
    if found is not None:
        assert len(found.sql) > len(sql)
        assert found.columns >= 1
        TABLES.sought(b"SELECT " + sql, KEYS)


@pytest.mark.parametrize("quote", [b"'", b'"', b"`"])
def test_linear_time(quote: bytes) -> None:
    """A long statement with quotes that never close takes no longer than its length asks for."""
    for rest in (b"x" * 50_000, b"x\\" * 50_000, b"\\" * 50_001, quote * 50_000 + b"x"):
        TABLES.select(b"SELECT a FROM posts WHERE b = " + quote + rest)
    TABLES.select(b"SELECT a FROM posts " + b"/*" * 50_000)
    TABLES.select(b"SELECT a FROM posts WHERE b IN (" + (quote + b"x\\" + quote) * 50_000)
    TABLES.sought(b"SELECT a FROM shop.orders WHERE shop = 1" + b" AND number = 1" * 50_000, KEYS)
    TABLES.sought(b"SELECT a FROM posts WHERE " + b"id IN (" * 50_000, KEYS)
    TABLES.sought(b"SELECT a FROM posts WHERE id IN (1" + b", 1" * 50_000, KEYS)
    TABLES.select(b"SELECT " + b"(" * 100_000)
    TABLES.select(b"SELECT " + b"/*" * 100_000)
