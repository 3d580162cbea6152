"""What reading the text of a statement costs: linear time, bounded memory, and no value is kept."""

from __future__ import annotations

import random
import time
import tracemalloc
from typing import TYPE_CHECKING, NamedTuple

import pytest

from antipode_shims._sql.texts import LONGEST
from antipode_shims.mysql import _functions as mysql_functions
from antipode_shims.mysql import _statements as mysql
from antipode_shims.postgresql import _statements as postgresql
from antipode_shims.postgresql._stored.mentions import mentions

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
#: What texts are made of: whatever opens, closes, hides, calls or divides.
PIECES = """
    '  "  `  ''  'x'  e'  E'\\'  $$  $a$  $a  $a$b  $b$  /*  */  /*!  /*!1  --  #  \\  (  )  ;
    f(  a.  .  AS  x,  1,  SELECT  INSERT  INTO  next  value  for  nextval  FROM  orders  COPY  é
""".split()  # noqa: SIM905 - a table that is read by eye
#: Texts that took quadratic time, or are the usual long ones.
UNITS = (
    *("/*", "$a{}$ ", "('b', 2), ", "'a\\b',", "/* */ ", "-- \n", "--;\n", "next "),
    *("$a$", "$a", "$$", "$a$b", " $a$", "a", "a.", "f(1, ", "AS a (", '"a".', '"', "'"),
    *("e'", "'' ", "(;", "orders "),
)


class Family(NamedTuple):
    """How a family of stores reads a text.

    Attributes:
        read: everything that is done with the text of a statement before it is sent.
        kept: what it keeps of texts.
    """

    read: Callable[[str], object]
    kept: Callable[[], object]


MEANINGS = postgresql.Meanings()


def _read_by_mysql(sql: str) -> None:
    raw = sql.encode()
    found = mysql.meaning(raw)
    mysql.reads(raw, found)
    mysql.closes(raw)
    mysql_functions.called(raw[:LONGEST])


def _read_by_postgresql(sql: str) -> None:
    assert MEANINGS[sql] is not None
    postgresql.unknown_functions(sql)
    mentions(sql, ("orders",))


FAMILIES = {
    "postgresql": Family(_read_by_postgresql, lambda: list(MEANINGS)),
    "mysql": Family(_read_by_mysql, lambda: list(mysql_functions._kept)),
}


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    return FAMILIES[request.param]


def spent_s(family: Family, sql: str) -> float:
    """Seconds of processor time."""
    started_s = time.process_time()
    family.read(sql)
    return time.process_time() - started_s


def is_linear(family: Family, short: str, long: str) -> bool:
    """Whether a text that is four times as long takes less than eight times the time: not sixteen.

    In the best of seven pairs: on a busy machine one of a pair may fall into a slow moment.
    """
    pairs = [(spent_s(family, short), spent_s(family, long)) for _ in range(7)]
    return min(long_s - 8 * short_s for short_s, long_s in pairs) < 0.002


def long_text(unit: str, length: int) -> str:
    """So many characters of a text that repeats a unit, and numbers it where that has a blank."""
    repeated = "".join(unit.replace("{}", str(n)) for n in range(length // len(unit) + 1))
    return f"SELECT f() {repeated}"[:length]


def assert_linear(family: Family, unit: str) -> None:
    assert is_linear(family, long_text(unit, 4_000), long_text(unit, 16_000)), unit


@pytest.mark.parametrize("unit", UNITS)
def test_long_texts_take_linear_time(family: Family, unit: str) -> None:
    """Comments in comments, tags in dollars, open quotes: nothing is searched again and again."""
    assert_linear(family, unit)


def test_comments_in_comments_take_linear_time() -> None:
    """Each level was searched for anew: 5,000 of them took seconds."""
    family = FAMILIES["postgresql"]
    short, long = ("/*" * n + "*/" * n for n in (2_000, 8_000))
    assert is_linear(family, short, long)
    assert postgresql.meaning("/*" * 2_000 + "*/" * 2_000 + " TABLE t") == postgresql.READS


@pytest.mark.parametrize("seed", range(40))
def test_random_texts_take_linear_time(family: Family, seed: int) -> None:
    """Whatever is repeated: all that opens, hides or calls, in any order."""
    draw = random.Random(seed)
    space = draw.choice(["", " "])
    assert_linear(family, space.join(draw.choices(PIECES, k=draw.randint(1, 4))) + space)


@pytest.mark.parametrize("unit", ["x", "1, ", "('b', 2), ", "f(", "'\\'"])
@pytest.mark.parametrize("length", [LONGEST, 160 * LONGEST])
def test_long_texts_take_bounded_memory(family: Family, unit: str, length: int) -> None:
    """A document of 10 MB takes no more than what is read of it, and its own bytes."""
    sql = "".join(["INSERT INTO t VALUES ('", long_text(unit, length)])
    tracemalloc.start()
    try:
        family.read(sql)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * MIB + len(sql)


def test_no_value_is_kept(family: Family) -> None:
    """Of 2,000 texts with values of their own a few bytes stay, and none of the values."""
    family.read("SELECT f('warm')")
    long = "x" * 5_000
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(2_000):
            family.read(f"SELECT f('a_customer {number} {long}', {7_000_000 + number}), 'and more'")
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    kept = repr(family.kept())
    assert grown < MIB
    assert "a_customer" not in kept
    assert "7000" not in kept


def test_texts_of_one_form_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, and comments such as those of traces, make no other statement."""
    read: list[str] = []
    plainly = postgresql._plainly

    def counted(plain: str, readonly: frozenset[str]) -> int:
        read.append(plain)
        return plainly(plain, readonly)

    monkeypatch.setattr(postgresql, "_plainly", counted)
    meanings = postgresql.Meanings()
    for number in range(200):
        sql = f"/* trace {number} */ TABLE once; SELECT t1, {number}, '{number}'"
        assert meanings[sql] == postgresql.READS | postgresql.MANY
    assert read == ["  TABLE once; SELECT t1, 0, ''"]


@pytest.mark.parametrize("end", ["", "; COMMIT", "; INSERT INTO t SELECT f()"])
def test_what_is_too_long_does_anything(end: str) -> None:
    """What lies beyond the bound is never taken for nothing, and a cursor is one that stays."""
    anything = postgresql.ANYTHING | postgresql.MANY
    for begin, more in (
        ("SELECT '", 0),
        ("INSERT INTO t VALUES (1); SELECT '", 0),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT 1, '", 0),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT 1, 2", postgresql.DECLARES | postgresql.HOLDS),
    ):
        sql = f"{begin}{' ' * LONGEST}'{end}"
        assert postgresql.meaning(sql) == anything | more
        found = mysql.meaning(sql.encode())
        assert found & (mysql.OPAQUE | mysql.MANY) == mysql.OPAQUE | mysql.MANY
        assert not found & mysql.LOCKS
    assert mentions("SELECT " + " " * LONGEST, ("orders",)).all == {"orders": 1}
