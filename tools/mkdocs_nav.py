"""A hook of mkdocs: the navigation, made from the pages that are there, and roles of docstrings.

A guide, a specification page or a decision appears as soon as its file does; its first heading is
its title. What a pattern (``guides/*.md``) finds is in the order of its names, without the pages
that are named somewhere.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig

#: Titles of sections with their pages, patterns of pages, and sections, in the order of a reader.
NAVIGATION: tuple[tuple[str, Any], ...] = (
    (
        "Start",
        (
            *("index.md", "start/first-steps.md", "start/when-not.md", "start/alternatives.md"),
            "start/*.md",
            "guides/worked-example.md",
            (
                "Concepts",
                (
                    *("concepts/lineage.md", "concepts/scope.md", "concepts/barrier.md"),
                    *("concepts/promises.md", "concepts/stored-lineage.md", "concepts/*.md"),
                ),
            ),
        ),
    ),
    (
        "How-to",
        (
            *("guides/dry-run.md", "guides/automatic-barriers.md"),
            *("guides/sessions.md", "guides/streams.md", "guides/store-events.md"),
            "guides/calls.md",
            ("Python", ("guides/integrations.md", "guides/datastores.md", "guides/django.md")),
            (
                "Datastores in Python",
                (
                    *(
                        "guides/mysql.md",
                        "guides/postgresql.md",
                        "guides/redis.md",
                        "guides/mongodb.md",
                    ),
                    *("guides/rabbitmq.md", "guides/*.md", "guides/own-shim.md"),
                ),
            ),
            ("Java", ("guides/java/index.md", "guides/java/spring-boot.md", "guides/java/*.md")),
            (
                "C++",
                (
                    *("guides/cpp/index.md", "guides/cpp/scopes.md", "guides/cpp/barriers.md"),
                    "guides/cpp/*.md",
                ),
            ),
            (
                "Tests",
                (
                    *("guides/testing.md", "guides/containers.md", "guides/checker.md"),
                    "guides/post-notification.md",
                    "guides/social-graph.md",
                ),
            ),
        ),
    ),
    (
        "Operate",
        (
            *("operate/production.md", "operate/roll-out.md", "guides/telemetry.md"),
            *("operate/troubleshooting.md", "operate/upgrading.md", "operate/limits.md"),
            *("operate/*.md", "operate/faq.md"),
        ),
    ),
    (
        "Reference",
        (
            *("reference/antipode.md", "reference/settings.md", "reference/cli.md"),
            *("reference/*.md", "reference/glossary.md"),
        ),
    ),
    ("Results", ("results/index.md", "results/wandering/index.md", "results/*.md")),
    (
        "Internals",
        (
            *("internals/index.md", "internals/*.md", "contributing.md", "changelog.md"),
            ("Specification", ("spec/README.md", "spec/lineage-format.md", "spec/*.md")),
            ("Decisions", ("adr/README.md", "adr/*.md")),
        ),
    ),
)
#: A role of Sphinx in a docstring, as mkdocstrings renders it: the markdown of it knows none.
ROLE = re.compile(r":(?:class|data|func|meth|mod|attr|exc):<code>~?([\w.]+)</code>")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation before mkdocs reads the pages."""
    config.nav = _section(Path(config.docs_dir), NAVIGATION)
    return config


def on_page_content(html: str, **_: object) -> str:
    """Show the names that roles of docstrings stand for."""
    return ROLE.sub(r"<code>\1</code>", html)


def _section(docs: Path, entries: tuple[Any, ...]) -> list[Any]:
    """What mkdocs takes for *entries*; sections without a page are left out."""
    found: list[Any] = []
    for entry in entries:
        if isinstance(entry, str):
            found += _pages(docs, entry)
        elif inside := _section(docs, entry[1]):
            found.append({entry[0]: inside})
    return found


def _pages(docs: Path, entry: str) -> list[str]:
    """The page of that name, or those of a pattern that no entry names."""
    if "*" not in entry:
        return [entry] if (docs / entry).is_file() else []
    named = set(_named(NAVIGATION))
    pages = sorted(path.relative_to(docs).as_posix() for path in docs.glob(entry))
    return [page for page in pages if page not in named]


def _named(entries: tuple[Any, ...]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            yield from _named(entry[1])
