"""GTIDs of MySQL and MariaDB as values: sets with gaps and tags, runs, positions and states."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antipode_shims.mysql._position.gtid import (
    GtidError,
    GtidSet,
    Interval,
    MariaDBGtid,
    MariaDBState,
    MySQLLog,
    mariadb_gtid,
    mariadb_gtids,
    mariadb_log,
    mysql_gtid,
)

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
B = "4e11fa47-71ca-11e1-9e33-c80aa9429562"


@given(st.text(alphabet="0123456789abcdef-:,#\n \u00e4", max_size=200))
def test_parsing_is_total(text: str) -> None:
    """Any text is a set or a GtidError."""
    with contextlib.suppress(GtidError):
        GtidSet.parse(text)


numbers = st.sets(st.integers(1, 40), max_size=20)


def as_set(members: set[int]) -> GtidSet:
    return GtidSet.parse(f"{A}:{':'.join(map(str, members))}") if members else GtidSet({})


@given(numbers, numbers, st.integers(1, 40), st.integers(0, 5))
def test_sets_are_sets(one: set[int], other: set[int], first: int, length: int) -> None:
    """Union, covering and containing mean what they mean for sets of numbers."""
    union = as_set(one).union(as_set(other))
    run = set(range(first, first + length + 1))
    assert union.contains(A, first, first + length) == (run <= one | other)
    assert as_set(one).covers(as_set(other)) == (other <= one)
    assert union == as_set(one | other)


def test_run_key_round_trip() -> None:
    """A run from 1 is named by its log alone, any other by its first number too."""
    assert MySQLLog(A, 1).key == A
    assert MySQLLog(f"{A}:t", 101).key == f"{A}:t/101"
    assert MySQLLog.of(f"{A}:t/101") == (f"{A}:t", 101)
    assert MySQLLog.of(A) == (A, 1)
    assert MySQLLog(A, 101).gtids(150) == f"{A}:101-150"


@pytest.mark.parametrize("key", ["", "0.1", f"{A}/0", f"{A}/x", f"{A}:", "elsewhere", f"{A}/1-2"])
def test_foreign_keys_are_none(key: str) -> None:
    """A key of another store is no MySQL log."""
    assert MySQLLog.of(key) is None


def test_mariadb_position() -> None:
    """A MariaDB position has one GTID for each domain; spaces do no harm."""
    assert mariadb_gtids("0-1-5, 7-3-18446744073709551615") == (
        MariaDBGtid(0, 1, 5),
        MariaDBGtid(7, 3, 2**64 - 1),
    )
    assert MariaDBGtid(0, 1, 5).key == "0.1"
    assert mariadb_log("0.1") == (0, 1)


@pytest.mark.parametrize("text", ["0-1", "a-b-c", f"{A}:1", "0-1-2-3", "0-1--2"])
def test_mariadb_nonsense_is_refused(text: str) -> None:
    """What is no GTID raises."""
    with pytest.raises(GtidError):
        mariadb_gtids(text)


@pytest.mark.parametrize("key", ["0", "0-1", "0.1.2", A, ".1"])
def test_foreign_keys_are_no_mariadb_log(key: str) -> None:
    """A key of another store is no MariaDB log."""
    assert mariadb_log(key) is None


def test_state_judges_each_server_alone() -> None:
    """Another server's larger number in the domain never stands for this server's."""
    state = MariaDBState.parse("0-1-8,0-2-11,5-1-3")
    assert state.reaches(0, 1, 8)
    assert not state.reaches(0, 1, 9)
    assert state.domain_max(0) == 11
    assert state.domain_max(9) == -1
    assert state.covers(MariaDBState.parse("0-1-8"))
    assert not state.covers(MariaDBState.parse("0-1-9"))


@pytest.mark.parametrize(
    "text",
    [f"{A.upper()}:7", f"{A}:foo:7", f"{A}:7-9", f"{A}:1:7", f"{A}:7,{B}:8", f"{A}:", f"{A}/2:7"],
)
def test_one_mysql_gtid_is_read_as_a_set_of_one(text: str) -> None:
    """The short way for the usual answer says what the long one does, or nothing."""
    found = mysql_gtid(text)
    if found is None:
        assert text not in (f"{A.upper()}:7", f"{A}:foo:7")
    else:
        assert GtidSet.parse(text).logs == {found[0]: (Interval(found[1], found[1]),)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("00-1-7", ("0.1", 7)),
        ("0-1-7,1-1-8", None),
        ("0.1-7", None),
        ("-1-7", None),
        ("0-1-", None),
        ("0-1-\N{ARABIC-INDIC DIGIT SEVEN}", None),
    ],
)
def test_one_mariadb_gtid_is_read_as_a_position_of_one(
    text: str, found: tuple[str, int] | None
) -> None:
    """The short way for the usual answer says what the long one does, or nothing."""
    assert mariadb_gtid(text) == found
    if found is not None:
        assert [(each.key, each.seq) for each in mariadb_gtids(text)] == [found]
