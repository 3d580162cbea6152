"""A hook of mkdocs: the navigation, made from the pages that are there.

A guide, a specification page or a decision appears as soon as its file does; its first heading is
its title. A folder within a section is a section of its own, named by the heading of its
``index.md``, which comes first.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
# The pages that come first in a folder within a section.
FIRST = ("index.md", "scopes.md", "barriers.md", "redis.md", "mysql.md")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation before mkdocs reads the pages."""
    docs = Path(config.docs_dir)
    nav: list[Any] = ["index.md"]
    for title, folder, first in SECTIONS:
        pages = _pages(docs, folder, first)
        if pages:
            nav.append({title: pages})
    nav += [page for page in ("contributing.md", "changelog.md") if (docs / page).is_file()]
    config.nav = nav
    return config


def _pages(docs: Path, folder: str, first: tuple[str, ...]) -> list[Any]:
    """The pages of one folder: those named first, the others by name, its folders last."""
    names = sorted(path.name for path in (docs / folder).glob("*.md"))
    ordered = [name for name in first if name in names]
    ordered += [name for name in names if name not in first]
    pages: list[Any] = [f"{folder}/{name}" for name in ordered]
    for index in sorted((docs / folder).glob("*/index.md")):
        title = index.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        pages.append({title: _pages(docs, f"{folder}/{index.parent.name}", FIRST)})
    return pages
