"""The tables of docs/spec/sql-statements.md are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from antipode_shims.mysql import _functions as functions
from antipode_shims.mysql import _statements as statements

SPEC = Path(__file__).parents[2] / "docs" / "spec"
PAGE = (SPEC / "sql-statements.md").read_text(encoding="utf-8")
FLAGS = {
    "reads": statements.READS,
    "writes": statements.WRITES,
    "commits": statements.COMMITS,
    "ends": statements.ENDS,
    "names": statements.TEMPORARY,
    "anything": statements.OPAQUE,
    "nothing": 0,
}
#: What further words of a statement decide, beyond the first table.
DECIDED = {
    "XA", "SET", "SHOW", "START", "BEGIN", "COMMIT", "ROLLBACK", "LOAD", "WITH",
}  # fmt: skip


def rule(number: int) -> str:
    """The text of one rule of the page."""
    body = PAGE.split("## Specification", 1)[1].split("\n## ", 1)[0]
    return re.split(rf"^{number}\. ", body, flags=re.MULTILINE)[1].split(f"\n{number + 1}. ")[0]


def first_words() -> dict[str, int]:
    """Each word of the first table, and what it does."""
    found: dict[str, int] = {}
    for does, words in re.findall(r"^ +\| (.+?) \| `([A-Z ]+)` \|$", rule(3), re.MULTILINE):
        flags = 0
        for name in re.findall(r"\w+", does):
            flags |= FLAGS[name]
        found |= dict.fromkeys(words.split(), flags)
    return found


def test_first_words() -> None:
    """The table and the code name the same words, and mean the same by each."""
    held = {word.decode(): flags & ~statements.NESTS for word, flags in statements._BY_WORD.items()}
    table = first_words()
    assert {word: does for word, does in table.items() if word not in DECIDED} == held
    for word in DECIDED:
        assert word.encode() in statements._SPECIAL
    assert set(table) == set(held) | DECIDED


def test_show_and_session_values() -> None:
    """What SHOW answers from the server's own tables, and which functions are of the session."""
    (shown,) = re.findall(r"```text\n(.*?)```", rule(6), re.DOTALL)
    assert set(shown.split()) == {word.decode() for word in statements._SHOWN}
    own, bare = re.findall(r"```text\n(.*?)```", rule(5), re.DOTALL)
    for name in own.split():
        assert statements.meaning(f"SELECT {name}()".encode()) == 0, name
        alone = statements.meaning(f"SELECT {name}".encode()) == 0
        assert alone is (name in bare.split()), name


def test_functions() -> None:
    """The tables of functions are those of the other page."""
    page = (SPEC / "sql-functions.md").read_text(encoding="utf-8")
    blocks = [set(one.lower().split()) for one in re.findall(r"```text\n(.*?)```", page, re.DOTALL)]
    own = {flavor.value: names for flavor, names in functions.OWN.items()}
    for block, held in zip(
        blocks, (functions.BOTH, own["MySQL"], own["MariaDB"], functions.WORDS), strict=True
    ):
        assert block == {name.decode() for name in held}
