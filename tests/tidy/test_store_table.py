"""The start page's table of stores, held to the tree."""

from __future__ import annotations

from tools.store_table import PAGE, with_languages


def test_the_table_says_which_languages_have_a_shim() -> None:
    """A store that gained or lost a language says so: `python -m tools.store_table`."""
    text = PAGE.read_text(encoding="utf-8")
    assert with_languages(text) == text
