"""Finished measurements, kept in a folder: a benchmark that is called again goes on with the rest.

One is taken again only where it is of the same code, options and machine.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from ._machine import machine

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def digest(root: Path, files: Iterable[Path]) -> str:
    """A digest of some files below *root*, their names included."""
    found = hashlib.sha256()
    for file in sorted(files):
        found.update(file.relative_to(root).as_posix().encode() + b"\0")
        found.update(file.read_bytes() + b"\0")
    return found.hexdigest()[:16]


class Cells:
    """A folder of finished measurements, each a file of JSON."""

    def __init__(self, folder: Path, code: str, *, fresh: bool = False) -> None:
        """Keep them in *folder*.

        Args:
            folder: is made, if it is not there.
            code: a digest of all that is measured.
            fresh: whether to forget what an earlier call left.
        """
        self._folder = folder
        self._code = code
        folder.mkdir(parents=True, exist_ok=True)
        if fresh:
            for file in folder.glob("*.cell.json"):
                file.unlink()

    def take(self, name: str, options: object) -> list[dict[str, Any]] | None:
        """What was found of these options by this code on this machine; None: it is not there."""
        try:
            kept = json.loads(self._file(name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        found: list[dict[str, Any]] = kept["found"]
        return found if kept.get("of") == self._of(options) else None

    def keep(self, name: str, options: object, found: list[dict[str, Any]]) -> None:
        """Write what was found, whole or not at all."""
        unfinished = self._file(name).with_suffix(".part")
        unfinished.write_text(json.dumps({"of": self._of(options), "found": found}), "utf-8")
        unfinished.replace(self._file(name))

    def _of(self, options: object) -> object:
        # As JSON has it: what is compared was read from a file.
        of: object = json.loads(
            json.dumps({"code": self._code, "options": options, "machine": machine()})
        )
        return of

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.cell.json"
