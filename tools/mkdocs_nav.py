"""A hook of mkdocs: the navigation, made from the pages that are there.

A guide, a specification page or a decision appears as soon as its file does; its first heading is
its title.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

# Section titles and folders, in the order of a reader; the pages that come first in their folder.
SECTIONS = (
    (
        "Concepts",
        "concepts",
        ("lineage.md", "scope.md", "barrier.md", "promises.md", "stored-lineage.md"),
    ),
    ("Guides", "guides", ()),
    ("Results", "results", ("index.md",)),
    ("Specification", "spec", ("README.md", "lineage-format.md")),
    ("Reference", "reference", ("antipode.md", "cli.md", "shim.md", "testing.md")),
    ("Internals", "internals", ("index.md",)),
    ("Decisions", "adr", ("README.md",)),
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation before mkdocs reads the pages."""
    docs = Path(config.docs_dir)
    nav: list[str | dict[str, list[str] | str]] = ["index.md"]
    for title, folder, first in SECTIONS:
        pages = _pages(docs, folder, first)
        if pages:
            nav.append({title: pages})
    nav += [page for page in ("contributing.md", "changelog.md") if (docs / page).is_file()]
    config.nav = nav
    return config


def _pages(docs: Path, folder: str, first: tuple[str, ...]) -> list[str]:
    """The pages of one folder: those named first, the others by name."""
    names = sorted(
        path.relative_to(docs / folder).as_posix() for path in (docs / folder).rglob("*.md")
    )
    ordered = [name for name in first if name in names]
    ordered += [name for name in names if name not in first]
    return [f"{folder}/{name}" for name in ordered]
