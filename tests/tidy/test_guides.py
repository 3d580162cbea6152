"""READMEs of the languages are one screen, and their code is tested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
READMES = [ROOT / language / "README.md" for language in ("cpp", "java")]
MAX_LINES = 120


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_the_readme_of_a_language_is_one_screen(readme: Path) -> None:
    """What goes into more detail is in the guides."""
    assert len(readme.read_text("utf-8").splitlines()) <= MAX_LINES


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_the_links_of_a_readme_lead_somewhere(readme: Path) -> None:
    """Every file that the README of a language names exists, with the heading."""
    for target in re.findall(r"\]\(([^):]+)\)", readme.read_text("utf-8")):
        path, _, heading = target.partition("#")
        page = (readme.parent / path).read_text("utf-8")
        slugs = [_slug(found) for found in re.findall(r"^#+ (.*)$", page, flags=re.MULTILINE)]
        assert not heading or heading in slugs, target


def test_the_readme_of_cpp_shows_what_is_compiled() -> None:
    """Its program is the one that the tests build against the installed package."""
    (program,) = re.findall(r"```c\+\+\n(.*?)```", READMES[0].read_text("utf-8"), flags=re.DOTALL)
    source = ROOT / "cpp" / "tests" / "installed" / "readme.cc"
    assert program == source.read_text("utf-8")


def _slug(heading: str) -> str:
    return re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())
