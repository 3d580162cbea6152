"""Reads of Redis that are made at the primary: which clients agree, and whose a cursor is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from antipode_shims.redis._clients.primary import (
    AT_PRIMARY,
    cursor_of,
    difference,
    is_scan,
    marked,
    without_mark,
)


@pytest.mark.parametrize(
    "command", [("SCAN", 0, "COUNT", 5), (b"hscan", "key", b"0"), ("SSCAN", "key", "0")]
)
def test_a_scan_goes_on_where_it_began(command: tuple[Any, ...]) -> None:
    """The application's cursor says whose it is, and the server sees its own."""
    position = 1 if command[0] == "SCAN" else 2
    assert is_scan(command)
    cursor, keys = marked([b"7", [b"a"]])
    assert (cursor, keys) == (AT_PRIMARY + 7, [b"a"])
    following = [*command[:position], cursor, *command[position + 1 :]]
    assert cursor_of(following) >= AT_PRIMARY
    assert without_mark(following) == [*command[:position], 7, *command[position + 1 :]]


def test_a_scan_that_is_over_is_over() -> None:
    """Its last cursor is 0 at both servers."""
    over = (0, [b"a"])
    assert marked(over) == over
    assert cursor_of(("SCAN", 0)) == 0


def test_commands_without_a_cursor_are_left() -> None:
    """Other commands, and scans that the server refuses."""
    assert not is_scan(("GET", "key"))
    assert not is_scan((7,))
    assert [cursor_of(each) for each in (("SCAN",), ("SCAN", "x"), ("HSCAN", "key"))] == [0, 0, 0]


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("db", 1),
        ("decode_responses", True),
        ("encoding", "latin-1"),
        ("protocol", 3),
    ],
)
def test_clients_agree_in_all_that_a_reply_shows(name: str, other: Any) -> None:
    """What is left out is the default; where one differs, no read is moved."""

    def pool(**options: Any) -> Any:
        return SimpleNamespace(connection_kwargs=options)

    assert difference(pool(), pool(db=0, protocol=None, encoding="utf-8", host="other")) is None
    assert difference(pool(), pool(**{name: other})) == name
