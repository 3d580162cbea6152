"""The table of terms: its names exist, and the words that it replaces are in no public name."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "spec" / "terms.md"
MODULES = ("antipode", "antipode.shim", "antipode.propagation", "antipode.telemetry")
#: What public names may not be made of.
HOUSE_WORDS = frozenset(
    {"anew", "beside", "births", "birth", "bury", "buried", "crumb", "crumbs", "epitaph", "face"}
    | {"faces", "grave", "graves", "look", "looks", "mint", "minted", "stranger", "strangers"}
    | {"told", "visit", "visits"}
)


class Term(NamedTuple):
    """One line of the table."""

    term: str
    meaning: str
    python: str
    java: str
    cpp: str


def terms() -> list[Term]:
    """The lines of the first table, without its head."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [Term(*row) for row in rows if len(row) == len(Term._fields) and row[0] != "term"]


def public_python() -> set[str]:
    """The public names of the core, and the attributes of its values."""
    found = {name for module in MODULES for name in importlib.import_module(module).__all__}
    return found | set(dir(importlib.import_module("antipode").WriteId))


def public_java() -> set[str]:
    """The types and methods that are public in Java."""
    found: set[str] = set()
    for path in ROOT.glob("java/antipode-*/src/main/java/io/antipode/**/*.java"):
        text = path.read_text(encoding="utf-8")
        if re.search(rf"^public [\w ]*\b{path.stem}\b", text, re.MULTILINE):
            found.add(path.stem)
            found.update(re.findall(r"^  public [^=;{(]*?(\w+)\(", text, re.MULTILINE))
            found.update(re.findall(r"\w+ (\w+)[,)]", text.partition("public record")[2][:400]))
    return found


def public_cpp() -> set[str]:
    """The types, functions and fields of C++'s public headers."""
    texts = [
        path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "cpp" / "include" / "antipode").glob("*.h"))
    ]
    code = re.sub(r"//[^\n]*", "", "\n".join(texts))
    return set(
        re.findall(r"(?:class|struct|enum)(?: class)?(?: ANTIPODE_EXPORT)? (\w+)", code)
    ) | set(re.findall(r"\b(\w+)(?= = [\w.\"{]+;|\()", code))


def metrics() -> set[str]:
    """The names of the metrics, as `antipode.telemetry.metrics()` and OpenTelemetry have them."""
    page = (ROOT / "docs" / "reference" / "telemetry.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `antipode\..*", page, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([a-z_.]+)`", row)}


PUBLIC = {"python": public_python(), "java": public_java(), "cpp": public_cpp()}


@pytest.mark.parametrize("language", PUBLIC)
def test_the_names_of_the_table_are_public(language: str) -> None:
    """Each name that the table gives for a language is a public one there."""
    named = {getattr(term, language).strip("`") for term in terms()} - {"-"}
    assert named
    assert named <= PUBLIC[language]


@pytest.mark.parametrize("names", [*PUBLIC.values(), metrics()], ids=[*PUBLIC, "metrics"])
def test_house_words_are_in_no_public_name(names: set[str]) -> None:
    """No public name of a language, and no metric, is made of a word that the table replaces."""
    assert names
    found = {
        name
        for name in names
        if HOUSE_WORDS & {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    }
    assert not found


def test_terms_are_in_order() -> None:
    """The table is sorted, and each term and each meaning is there once."""
    found = terms()
    assert [term.term for term in found] == sorted({term.term for term in found})
    assert len({term.meaning for term in found}) == len(found)
