"""Pages for users are complete: what code and specification have, they have, too."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import iter_modules

import pytest

import antipode
import antipode_shims
from tools.reference_pages import WRITTEN, written

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OPERATE = DOCS / "operate"
#: What the library gives its own servers and Django's settings, and takes from no environment.
NOT_READ = {
    *("ANTIPODE_CONF", "ANTIPODE_DATABASES", "ANTIPODE_FOLLOWS", "ANTIPODE_HBA"),
    "ANTIPODE_PLUGINS",
}


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def sources() -> list[Path]:
    """The Python files that users install."""
    folders = ("antipode", "antipode_cli", "shims", "testing")
    return [path for folder in folders for path in (ROOT / folder).rglob("*.py")]


def first_cells(text: str) -> set[str]:
    """What stands in code font in the first column of tables."""
    cells = re.findall(r"^\| ([^|]+) \|", text, flags=re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def specified_codes() -> set[str]:
    """The codes of the specification's two tables of errors: names in lower case."""
    page = text_of(DOCS / "spec" / "barrier-and-outcomes.md")
    section = page.split("### Results and errors\n", 1)[1].split("\n### ", 1)[0]
    rows = re.findall(r"^\|([^|]+\|[^|]+)\|", section, flags=re.MULTILINE)
    return {code for row in rows for code in re.findall(r"`([a-z_]+)`", row)}


def codes_in_code() -> set[str]:
    """The codes of the errors of the library, its shims, its program and its testing tools."""
    code = re.compile(r"""^    code(?:: ClassVar\[str\])? = "([a-z_]+)"$""", flags=re.MULTILINE)
    return {found for path in sources() for found in code.findall(text_of(path))}


def test_troubleshooting_has_every_error_code() -> None:
    """Whoever looks for a code of the code or of the specification finds what to do."""
    page = text_of(OPERATE / "troubleshooting.md")
    section = page.split("## By error code\n", 1)[1].split("\n## ", 1)[0]
    assert first_cells(section) == codes_in_code() | specified_codes()


def test_troubleshooting_has_every_mark() -> None:
    """Whoever meets an incomplete lineage finds what its reason means."""
    page = text_of(OPERATE / "troubleshooting.md")
    marks = page.split("## By mark\n", 1)[1].split("\n## ", 1)[0]
    spec = text_of(DOCS / "spec" / "lineage-format.md")
    reasons = spec.split("| reason | what is missing |\n", 1)[1].split("\n\n", 1)[0]
    assert first_cells(marks) == first_cells(reasons)


def test_limits_are_of_every_shim() -> None:
    """Each datastore has its limits, with the link to the guide that has all of them."""
    page = text_of(OPERATE / "limits.md")
    for shim in iter_modules(antipode_shims.__path__):
        if not shim.name.startswith("_"):
            assert f"\n[Guide](../guides/{shim.name}.md#" in page, shim.name


def test_every_variable_is_on_the_page_of_settings() -> None:
    """No variable of the environment is read that no page of the reference names."""
    named = re.compile(r"""["'](ANTIPODE_[A-Z_]+[A-Z])["']""")
    read = {name for path in sources() for name in named.findall(text_of(path))}
    page = text_of(DOCS / "reference" / "settings.md")
    assert {name for name in read if f"`{name}`" not in page} == NOT_READ


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_what_is_written_is_fresh(name: str) -> None:
    """Settings, glossary and figures are as their sources: `python -m tools.reference_pages`."""
    path, text = written(name)
    assert text_of(path) == text


def test_stores_at_a_glance_are_those_of_the_start_page() -> None:
    """A store of the start page says what a dependency is there, and how a barrier waits."""

    def stores(page: Path) -> list[str]:
        table = text_of(page).split("\n| store |", 1)[1].split("\n\n", 1)[0].split("\n<!--", 1)[0]
        return re.findall(r"^\| ([^|]+) \|", table, flags=re.MULTILINE)

    assert stores(DOCS / "reference" / "stores.md") == stores(DOCS / "index.md")


def test_the_reference_has_every_name_of_the_core() -> None:
    """What an application may import is in the reference, and `barrier` comes first."""
    page = text_of(DOCS / "reference" / "antipode.md")
    named = re.findall(r"^::: antipode\.([a-zA-Z_]+)$", page, flags=re.MULTILINE)
    assert named[0] == "barrier"
    assert sorted(named) == sorted([*antipode.__all__, "propagation"])
