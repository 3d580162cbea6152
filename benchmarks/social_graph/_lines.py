"""The lines that the library adds: by file, without those that are empty or comments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._build import JAVA, SERVICES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

#: What measures is no wiring.
_MEASURES = ("hops", "Measure", "CallsTimed")


def added() -> dict[str, int]:
    """How many lines the library adds to each file that has any; files that services share too."""
    found = {
        **{path.name: _between(path.read_text("utf-8").splitlines()) for path in _cpp()},
        **{path.name: _code(path.read_text("utf-8").splitlines()) for path in _java()},
        "_process.py": sum(
            "antipode" in line for line in _lines((SERVICES / "_process.py").read_text("utf-8"))
        ),
    }
    return {name: lines for name, lines in found.items() if lines}


def _cpp() -> Iterator[Path]:
    yield from (path for path in sorted(SERVICES.glob("*.cc")) if path.stem != "hops")


def _java() -> Iterator[Path]:
    yield from sorted((JAVA / "src" / "antipode").rglob("*.java"))


def _lines(text: str) -> Iterator[str]:
    yield from (line for line in text.splitlines() if line.strip())


def _code(lines: Iterable[str]) -> int:
    return sum(
        bool(line.strip()) and not line.strip().startswith(("//", "/*", "*")) for line in lines
    )


def _between(lines: Iterable[str]) -> int:
    """Lines of C++ that are compiled with the library alone."""
    inside, kept = False, []
    for line in lines:
        if line.startswith("#ifdef ANTIPODE"):
            inside = True
        elif line.startswith(("#else", "#endif")):
            inside = False
        elif inside and not any(word in line for word in _MEASURES):
            kept.append(line)
    return _code(kept)
