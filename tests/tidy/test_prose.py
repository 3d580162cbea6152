"""Pages for users use the words of the field, and show code that fits a narrow window."""

from __future__ import annotations

import re
from pathlib import Path

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
FENCE = re.compile(r"^( *)(```+).*?^\1\2 *$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`[^`\n]+`|\]\([^)]*\)|<!--.*?-->")


def prose(page: Path) -> list[str]:
    """The lines of a page without code, addresses of links and comments."""
    text = FENCE.sub(lambda found: "\n" * found[0].count("\n"), page.read_text(encoding="utf-8"))
    return INLINE.sub("", text).splitlines()


def test_pages_for_users_have_no_words_of_the_house() -> None:
    """Words that only the specification explains are in code font, as names, or not there."""
    found = [
        f"{page.relative_to(ROOT)}:{number}: {word[0]}"
        for page in PAGES
        for number, line in enumerate(prose(page), start=1)
        for word in HOUSE_WORDS.finditer(line)
    ]
    assert found == []
