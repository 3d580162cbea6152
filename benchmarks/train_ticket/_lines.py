"""The lines that the library adds to each service: code, and settings."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

from ._build import SERVICES

if TYPE_CHECKING:
    from collections.abc import Iterable

_NOTIFICATION = Path(__file__).with_name("notification_antipode.py")
_SETTING = "antipode."


def added() -> dict[str, tuple[int, int]]:
    """For each service how many lines of code and how many settings the library adds to it.

    Lines that are empty or comments do not count. A line that is changed counts as added.
    """
    found = {}
    for service in sorted(it.parent.name for it in SERVICES.glob("*/pom.xml")):
        found[service] = (_code(SERVICES / service), _settings(SERVICES / service))
    source = _NOTIFICATION.read_text(encoding="utf-8").splitlines()
    return {**found, "notification": (sum(_counts(line) for line in source), 0)}


def _code(service: Path) -> int:
    """Lines of the classes that differ."""
    number = 0
    for file in sorted((service / "src" / "antipode").rglob("*.java")):
        plain = service / "src" / "baseline" / file.relative_to(service / "src" / "antipode")
        before, after = (it.read_text(encoding="utf-8").splitlines() for it in (plain, file))
        number += sum(_counts(line) for line in _new(before, after))
    return number


def _new(before: list[str], after: list[str]) -> Iterable[str]:
    for line in difflib.ndiff(before, after):
        if line.startswith("+ "):
            yield line[2:]


def _settings(service: Path) -> int:
    text = (service / "src" / "main" / "resources" / "application.properties").read_text("utf-8")
    return sum(line.startswith(_SETTING) for line in text.splitlines())


def _counts(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith(("//", "/*", "*", "#", '"""'))
