"""Pages for users use the words of the field, and show code that fits a narrow window."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *(
            page
            for name in ("README.md", "java/README.md", "cpp/README.md", "docs/index.md")
            for page in [ROOT / name]
        ),
        *(
            page
            for name in ("start", "guides", "concepts", "operate")
            for page in (ROOT / "docs" / name).rglob("*.md")
        ),
    ]
)
#: Words of the specification and of the project, which a reader of these pages does not know.
HOUSE_WORDS = re.compile(
    r"\bTable 2\b|\bfloors?\b|\bcovering\b|\bbeside\b|passed unseen", re.IGNORECASE
)
MAX_COLUMNS = 72  # What a snippet shows in a window of 1,280 pixels, between two menus.
#: Pages with the output of a program, or a drawing, that cannot be broken.
OUTPUT = {
    *("concepts/stored-lineage.md", "guides/checker.md", "guides/dry-run.md"),
    *("guides/java/several-services.md", "guides/java/spring-boot.md"),
    "guides/telemetry.md",
}
FENCE = re.compile(r"^( *)(```+).*?^\1\2 *$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`[^`\n]+`|\]\([^)]*\)|<!--.*?-->")


def prose(page: Path) -> list[str]:
    """The lines of a page without code, addresses of links and comments."""
    text = FENCE.sub(lambda found: "\n" * found[0].count("\n"), page.read_text(encoding="utf-8"))
    return INLINE.sub("", text).splitlines()


def snippets(page: Path) -> Iterator[tuple[int, str]]:
    """The lines of code of a page, without what a program prints and what is included."""
    text = page.read_text(encoding="utf-8")
    for block in FENCE.finditer(text):
        first, *lines = block[0].splitlines()
        prints = page.relative_to(ROOT).as_posix().removeprefix("docs/") in OUTPUT
        if prints and first.strip(" `") in ("text", "console"):
            lines = [line if line.startswith("$ ") else "" for line in lines]
        number = text.count("\n", 0, block.start()) + 1
        for after, line in enumerate(lines, start=1):
            if not line.lstrip().startswith("--8<--"):
                yield number + after, line


def test_pages_for_users_have_no_words_of_the_house() -> None:
    """Words that only the specification explains are in code font, as names, or not there."""
    found = [
        f"{page.relative_to(ROOT)}:{number}: {word[0]}"
        for page in PAGES
        for number, line in enumerate(prose(page), start=1)
        for word in HOUSE_WORDS.finditer(line)
    ]
    assert found == []


def test_snippets_fit_their_window() -> None:
    """No line of a snippet is longer than 72 columns, but in what programs print."""
    found = [
        f"{page.relative_to(ROOT)}:{number}: {line}"
        for page in PAGES
        for number, line in snippets(page)
        if len(line) > MAX_COLUMNS
    ]
    assert found == []


def test_pages_with_wide_output_have_some() -> None:
    """No page is excused whose output is narrow by now."""
    wide = {
        name
        for name in OUTPUT
        for block in FENCE.finditer((ROOT / "docs" / name).read_text(encoding="utf-8"))
        if max(map(len, block[0].splitlines())) > MAX_COLUMNS
    }
    assert wide == OUTPUT
