"""Write what pages of the documentation take from elsewhere: ``python -m tools.reference_pages``.

The settings come from the code, the glossary from the table of terms of the specification, and the
figures of the alternatives from the page of results. Each page keeps its own words around them.
"""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from antipode import configure
from antipode._runtime.config import Config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BEGIN = "<!-- {}: written by `python -m tools.reference_pages`, not by hand -->"
END = "<!-- end of {} -->"
#: The stores, strategies and columns of the evaluation that the page of alternatives shows.
STORES = ("redis", "mysql")
STRATEGIES = (
    *("none", "barrier", "instrumented", "auto", "primary"),
    *("sticky", "session", "synchronous", "retry", "sleep"),
)
COLUMNS = ("strategy", "violations", "window", "writer", "reader", "lines")


def settings() -> str:
    """Every setting with its variable, its default and its meaning."""
    lines = [
        "| setting | variable | default | what it is |",
        "|---|---|---|---|",
    ]
    meanings = _meanings()
    for setting in fields(Config):
        kind, meaning = meanings[setting.name]
        shown = f"{_capital(meaning)} <br>*Type*: `{kind.replace(' | ', ' or ')}`"
        variable = f"`ANTIPODE_{setting.name.upper()}`"
        default = _default(setting.default)
        lines.append(f"| `{setting.name}` | {variable} | {default} | {shown} |")
    return "\n".join(lines)


def _meanings() -> dict[str, tuple[str, str]]:
    """Of each setting its type and its meaning, as `configure` says it."""
    text = inspect.getdoc(configure) or ""
    arguments = text.split("Keyword Args:\n", 1)[1].split("\n\n", 1)[0]
    entries = re.split(r"^    (?=\w)", arguments, flags=re.MULTILINE)
    found = {}
    for entry in filter(None, entries):
        head, meaning = " ".join(entry.split()).split("): ", 1)
        name, kind = head.split(" (", 1)
        found[name] = kind, _markdown(meaning)
    return found


def _markdown(text: str) -> str:
    """Docstrings' own marks as those of a page."""
    text = re.sub(r":func:`(?:~?[\w.]*?)?(\w+)`", r"`\1()`", text)
    return _cell(text.replace("``", "`"))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _capital(text: str) -> str:
    """*text* with a capital letter, unless it begins with code."""
    return text if text.startswith("`") else text[0].upper() + text[1:]


def _default(value: object) -> str:
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        days = seconds / 86_400
        return f"`{days:g}d`" if days >= 1 else f"`{seconds:g}` s"
    return "none" if value in (None, ()) else f"`{value}`"


def glossary() -> str:
    """Every term of the specification with its meaning and its names in code."""
    lines = []
    for row in _table((DOCS / "spec" / "terms.md").read_text(encoding="utf-8"), "term"):
        names = {
            language: row[language]
            for language in ("Python", "Java", "C++")
            if row[language] != "-"
        }
        spelt = "; ".join(f"{language}: {name}" for language, name in names.items())
        lines += [f"**{row['term']}**", f":   {_capital(row['meaning'])}."]
        lines += [f"    {spelt}.", ""] if spelt else [""]
    return "\n".join(lines).rstrip()


def figures() -> str:
    """What the evaluation found of each alternative, without the intervals."""
    page = (DOCS / "results" / "index.md").read_text(encoding="utf-8")
    section = page.split("\n## What one could do instead\n", 1)[1].split("\n## ", 1)[0]
    lines = [f"| store | {' | '.join(COLUMNS)} |", "|---|---|---:|---:|---:|---:|---:|"]
    for store in STORES:
        found = {
            row["strategy"].strip("`"): row
            for row in _table(section.split(f"\n### {store}\n", 1)[1], "strategy")
        }
        for strategy in filter(found.__contains__, STRATEGIES):
            cells = [found[strategy][column].split(" (", 1)[0] for column in COLUMNS]
            lines.append(f"| {store} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _table(text: str, first: str) -> Iterable[dict[str, str]]:
    """The rows of the first table in *text* whose first column is *first*, by their columns."""
    lines = text[text.index(f"| {first} |") :].splitlines()
    head = _cells(lines[0])
    for line in lines[2:]:
        if not line.startswith("|"):
            return
        yield dict(zip(head, _cells(line), strict=True))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


#: What is written where, by the name in its marks.
WRITTEN: dict[str, tuple[str, Callable[[], str]]] = {
    "settings": ("reference/settings.md", settings),
    "terms": ("reference/glossary.md", glossary),
    "figures": ("start/alternatives.md", figures),
}


def written(name: str) -> tuple[Path, str]:
    """The page of *name*, and its text as it should be.

    Raises:
        ValueError: the page lacks the marks.
    """
    page, content = WRITTEN[name]
    path = DOCS / page
    text = path.read_text(encoding="utf-8")
    begin, end = BEGIN.format(name), END.format(name)
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        msg = f"{path} lacks the marks of {name!r}"
        raise ValueError(msg)
    return path, f"{before}{begin}\n\n{content()}\n\n{end}{after}"


def main() -> None:
    """Write all of them."""
    for name in WRITTEN:
        path, text = written(name)
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
