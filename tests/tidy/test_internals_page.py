"""The page for new maintainers names files and folders that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "internals" / "index.md").read_text(encoding="utf-8")
TREE = PAGE.partition("```text\n")[2].partition("```")[0]


def test_files_in_the_text_exist() -> None:
    """Every path that the text names is there."""
    named = re.findall(r"`([\w.]+/[\w./]+)`", PAGE.replace(TREE, ""))
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_tree_exists() -> None:
    """Every file and folder of the tree is there, those that are indented under the core."""
    missing = []
    for line in TREE.splitlines():
        names = re.split(r"\s{2,}", line.strip())[0]
        parent = ROOT / "antipode" if line.startswith(" ") else ROOT
        missing += [name for name in names.split(", ") if not (parent / name).exists()]
    assert not missing
