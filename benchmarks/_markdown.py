"""Pieces of generated pages that are of no one benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> str:
    """A table in Markdown: columns of text first, then figures."""
    rules = ["---"] * text_columns + ["---:"] * (len(head) - text_columns)
    lines = [head, rules, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def listed(names: Sequence[str]) -> str:
    """Some names in a sentence."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
