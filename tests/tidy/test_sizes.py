"""`python -m tools.sizes` counts lines, clones and the walk of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode import Lineage, WriteId
from tools import sizes

if TYPE_CHECKING:
    import pytest

BODY = "\n".join(f"first_{line} = second_{line}({line}, 'a')" for line in "abcdef")


def test_a_clone_is_six_lines_whatever_their_values_are() -> None:
    """Strings, comments, blanks and imports tell no two places apart; other names do."""
    other = BODY.replace("'a'", "'b'").replace("\n", "\n\n# why\nimport os\n")
    renamed = BODY.replace("first_c", "third")
    found = sizes.clones({"a": BODY, "b": f"before()\n{other}", "c": renamed})
    assert found == [("a", "b")]


def test_one_file_may_repeat_itself() -> None:
    """Twelve lines that are six twice are one clone; six lines are none."""
    assert sizes.clones({"a": f"{BODY}\n{BODY}", "b": "x = y"}) == [("a", "a")]
    assert not sizes.clones({"a": BODY})


def test_what_stands_everywhere_is_no_clone() -> None:
    """Lines that nine files share are an idiom of the house."""
    assert not sizes.clones({str(name): BODY for name in range(9)})


def test_a_walk_names_the_packages_that_a_call_enters() -> None:
    """A lineage is of one package, which is entered once."""
    entered = sizes.walk(lambda: Lineage([WriteId("posts", "log", 7)]))
    assert entered == ["antipode._lineage"]
    assert sizes.returns(["a", "b", "a", "b"]) == 2


def test_sources_are_counted() -> None:
    """There are shims and Java's sources, no tests among them, and all have lines."""
    for files in sizes.shims(), sizes.java():
        assert sizes.lines(files) > 10_000
        assert not [file for file in files if "test" in file.parts]


def test_figures_stand_beside_their_bars(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tool prints all five figures, and fails unless all are within."""
    monkeypatch.setattr(sizes, "write_walk", lambda: ["a", "b", "a"])
    ended = sizes.main()
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 6
    assert ended == int(any(line.endswith("above") for line in printed))
    monkeypatch.setattr(sizes, "sizes", lambda: [sizes.Size("lines", 1, 1)])
    assert sizes.main() == 0
