"""Write into the start page what each language has of a store: ``python -m tools.store_table``.

A language has a shim where its part of the tree holds one. The other columns are written by hand.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "index.md"
#: Where the shim of a store is, and what a program names to use it.
SHIMS = {
    "Python": ("shims/antipode_shims/{}", "`antipode_shims.{}`"),
    "Java": ("java/antipode-{}", "`antipode-{}`"),
    "C++": ("cpp/include/antipode/{}.h", "`antipode::{}`"),
}
HEAD = ("store", *SHIMS)
_ROW = re.compile(r"`antipode_shims\.(\w+)`")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def with_languages(text: str) -> str:
    """*text* of the page, with the columns of languages as the tree has them."""
    lines = text.split("\n")
    head = next(at for at, line in enumerate(lines) if _cells(line)[: len(HEAD)] == list(HEAD))
    at = head + 2
    while lines[at].startswith("|"):
        cells = _cells(lines[at])
        named = _ROW.fullmatch(cells[1])
        if named is None:
            msg = f"the table of stores: no shim of Python is named in the row {cells[0]!r}"
            raise ValueError(msg)
        store = named[1]
        cells[1 : len(HEAD)] = [
            name.format(store) if (ROOT / path.format(store)).exists() else "none"
            for path, name in SHIMS.values()
        ]
        lines[at] = _row(cells)
        at += 1
    return "\n".join(lines)


def main() -> None:
    """Write the page."""
    PAGE.write_text(with_languages(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
