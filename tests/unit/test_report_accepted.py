"""Comments that accept findings: which lines they are of, and what they must say."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import fromstring

import pytest

from antipode_cli.report import FORMATS, Report, accept, load, render, report
from tests.unit._dry_run_files import Recorder, entry, save

if TYPE_CHECKING:
    from pathlib import Path


def judged(folder: Path, source: str, *lines: int, lint: bool = False) -> Report:
    """The report of reads, or lints, on these lines of a file, its comments taken in."""
    (folder / "app.py").write_text(source, encoding="utf-8")
    one = Recorder("aaaaaaaaaaaa")
    for line in lines:
        where = ("app.py", line, "f")
        if lint:
            one.lint(1.0, where, "unscoped-write")
        else:
            one.read(1.0, where, entry(1))
    return accept(report(load([save(folder / "records", [one])]), fail_on="lint"), folder)


@pytest.mark.parametrize(
    "source",
    [
        "read()  # antipode: ok(why)\n",
        "read()  #antipode:ok( why )\n",
        "read()  # antipode: ok(why)  # noqa: S101\n",
    ],
)
def test_reason_is_what_stands_in_the_parentheses(tmp_path: Path, source: str) -> None:
    """However it is spaced, and whatever follows it."""
    found = judged(tmp_path, source, 1)
    assert [one.accepted for one in found.accepted] == ["why"]
    assert not found.failed


def test_parentheses_in_a_reason_are_part_of_it(tmp_path: Path) -> None:
    """The reason goes up to the last one."""
    found = judged(tmp_path, "read()  # antipode: ok(late (by design))\n", 1)
    assert [one.accepted for one in found.accepted] == ["late (by design)"]


def test_reason_is_shown_by_every_format(tmp_path: Path) -> None:
    """What a terminal or XML cannot hold is replaced; the rest stands in each report."""
    found = judged(tmp_path, "read()  # antipode: ok(a <late> \x1b[31mpage)\n", 1)
    assert [one.accepted for one in found.accepted] == [
        "a <late> \N{REPLACEMENT CHARACTER}[31mpage"
    ]
    for wanted in FORMATS:
        text = render(found, wanted)
        assert "\x1b" not in text
        assert wanted == "github" or "late" in text
    assert "<late>" not in render(found, "html")
    fromstring(render(found, "junit"))  # noqa: S314 - our own text


@pytest.mark.parametrize(
    "source",
    [
        "read()  # antipode: okay(why)\n",
        "read()  # see antipode: ok(why)\n",
        "read('# antipode: ok(why)')\n",
        "read(  # comments are below\n    # antipode: ok(why)\n)\n",
        "read('\\n",
        "",
    ],
)
def test_nothing_else_accepts(tmp_path: Path, source: str) -> None:
    """Not other words, not strings, not other lines, not what is no Python."""
    found = judged(tmp_path, source, 1)
    assert not found.accepted
    assert not found.unreasoned
    assert found.failed


def test_every_line_of_a_finding_must_be_accepted(tmp_path: Path) -> None:
    """Of two reads in one function a comment at one is not enough."""
    one = "read()  # antipode: ok(first)\nread()\n"
    assert not judged(tmp_path, one, 1, 2).accepted
    both = "read()  # antipode: ok(first)\n# antipode: ok(second)\nread()\n"
    found = judged(tmp_path, both, 1, 3)
    assert [each.accepted for each in found.accepted] == ["first; second"]


def test_lints_are_accepted_too(tmp_path: Path) -> None:
    """At their own line."""
    found = judged(tmp_path, "write()  # antipode: ok(set up once)\n", 1, lint=True)
    assert [one.accepted for one in found.accepted] == ["set up once"]
    assert not found.failed


def test_missing_reason_fails_at_every_level(tmp_path: Path) -> None:
    """Its place is told, once, and it accepts nothing."""
    found = judged(tmp_path, "read()  # antipode: ok\n", 1, 1)
    assert found.unreasoned == ("app.py:1",)
    assert not found.accepted
    assert found.failed


def test_without_the_source_nothing_is_accepted(tmp_path: Path) -> None:
    """Records of another machine keep their findings."""
    found = judged(tmp_path, "read()  # antipode: ok(why)\n", 1)
    (tmp_path / "app.py").unlink()
    again = accept(found, tmp_path)
    assert not again.accepted
    assert len(again.new) == 1
