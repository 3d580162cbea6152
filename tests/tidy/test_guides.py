"""READMEs of the languages are one screen with tested code; guides have short sentences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDES = sorted(
    page
    for folder in ("start", "guides", "operate")
    for page in (ROOT / "docs" / folder).rglob("*.md")
)
READMES = [ROOT / language / "README.md" for language in ("cpp", "java")]
MAX_LINES = 120
MAX_SENTENCE = 200  # Characters as they are shown: without the addresses of links.

CODE = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$", flags=re.DOTALL | re.MULTILINE)
ITEM = re.compile(r"\s*([-*+]|\d+\.) ")


def sentences(page: str) -> list[str]:
    """The sentences of a page's prose: without code, tables, headings and comments."""
    paragraphs: list[list[str]] = [[]]
    for line in CODE.sub("\n", page).splitlines():
        if not line.strip() or line.lstrip().startswith(("|", "#", "<!--", "!!!")):
            paragraphs.append([])
        elif ITEM.match(line):
            paragraphs.append([line.strip()])
        else:
            paragraphs[-1].append(line.strip())
    shown = (re.sub(r"\]\([^)]*\)", "]", " ".join(lines)) for lines in paragraphs)
    ends = re.compile(r"(?<=[.!?])[\"*`)\]]*\s+(?=[A-Z`*\[\"(0-9])")
    return [sentence for text in shown for sentence in ends.split(text)]


def test_sentences_of_guides_are_short() -> None:
    """No sentence of a page for users is longer than 200 characters."""
    long = [
        f"{page.relative_to(ROOT)}: {sentence}"
        for page in GUIDES
        for sentence in sentences(page.read_text(encoding="utf-8"))
        if len(sentence) > MAX_SENTENCE
    ]
    assert long == []


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_the_readme_of_a_language_is_one_screen(readme: Path) -> None:
    """What goes into more detail is in the guides."""
    assert len(readme.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_the_links_of_a_readme_lead_somewhere(readme: Path) -> None:
    """Every file that the README of a language names exists, with the heading."""
    for target in re.findall(r"\]\(([^):]+)\)", readme.read_text(encoding="utf-8")):
        path, _, heading = target.partition("#")
        page = (readme.parent / path).read_text(encoding="utf-8")
        slugs = [_slug(found) for found in re.findall(r"^#+ (.*)$", page, flags=re.MULTILINE)]
        assert not heading or heading in slugs, target


def test_the_readme_of_cpp_shows_what_is_compiled() -> None:
    """Its program is the one that the tests build against the installed package."""
    (program,) = re.findall(
        r"```c\+\+\n(.*?)```", READMES[0].read_text(encoding="utf-8"), flags=re.DOTALL
    )
    source = ROOT / "cpp" / "tests" / "installed" / "readme.cc"
    assert program == source.read_text(encoding="utf-8")


def _slug(heading: str) -> str:
    return re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())
