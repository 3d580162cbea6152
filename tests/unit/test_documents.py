"""What the guides and the README show is what the library takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import antipode
from antipode_testing.lab import STORES, topology_class

ROOT = Path(__file__).parents[2]
PAGES = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md"), ROOT / "README.md"]
#: A header as pages show it; inside of quotes and console output as well.
SAMPLE = re.compile(r"(?:antipode-lineage: |\bantipode=)(1[A-Za-z0-9._~-]*)")


def test_every_lineage_in_a_sample_header_decodes() -> None:
    """A reader who copies a header of a page into `antipode explain` sees a lineage."""
    shown = [
        (page.name, text)
        for page in PAGES
        if "adr" not in page.parts
        for text in SAMPLE.findall(page.read_text(encoding="utf-8"))
    ]
    assert len(shown) >= 3
    for page, text in shown:
        assert antipode.deserialize(text) is not None, page


def test_the_worked_example_says_what_it_needs() -> None:
    """Its lines install the packages and the servers before they start it."""
    guide = (ROOT / "docs" / "guides" / "worked-example.md").read_text(encoding="utf-8")
    lines = guide.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert [line.partition("#")[0].strip() for line in lines] == [
        "pip install -e '.[examples]' -e testing",
        "make stores",
        "python -m examples.posts",
    ]


def test_the_extra_brings_what_the_worked_examples_engine_needs() -> None:
    """`create_async_engine` on MySQL needs aiomysql, and SQLAlchemy's own extra for asyncio."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (extra,) = re.findall(r"^mysql = \[([^]]*(?:\[[^]]*\][^]]*)*)\]$", project, re.MULTILINE)
    named = set(re.findall(r'"([^"><=]+)', extra))
    assert {"PyMySQL", "aiomysql", "SQLAlchemy[asyncio]"} <= named


@pytest.mark.parametrize("store", sorted(STORES))
def test_every_topology_takes_a_lag(store: str) -> None:
    """As the README's `EmbeddedTopology(lag_ms=100)` does; what is no lag is refused."""
    make = topology_class(store)
    make(lag_ms=100.0)
    for wrong in (-1.0, float("inf"), float("nan")):
        with pytest.raises(antipode.ConfigurationError, match="milliseconds"):
            make(lag_ms=wrong)
