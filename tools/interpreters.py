"""The interpreters of this machine that can run the project: each was run, not just found."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDEST = (3, 10)
NAME = re.compile(r"^python3\.(\d+)$")
# pip needs ssl, the embedded store sqlite3; Debian's python3 without python3-venv has no ensurepip.
PROBE = (
    "import sys, ensurepip, sqlite3, ssl, venv;"
    "print('%d.%d' % sys.version_info[:2], sys.executable)"
)
PROBE_LIMIT_S = 30


@dataclass(frozen=True)
class Interpreter:
    """A complete Python: its minor version as text (`3.12`) and its own path."""

    minor: str
    path: str


def find_interpreters() -> tuple[list[Interpreter], list[str]]:
    """One interpreter per minor version, oldest first, and why the other versions are left out."""
    found: dict[str, Interpreter] = {}
    reasons: dict[str, str] = {}
    for minor, path in _candidates():
        if minor in found:
            continue
        try:
            found[minor] = _probe(path)
        except RuntimeError as error:
            reasons.setdefault(minor, f"Python {minor}: {path}: {error}")
    skipped = [reason for minor, reason in reasons.items() if minor not in found]
    in_order = sorted(found.values(), key=lambda one: int(one.minor.split(".")[1]))
    return in_order, skipped


def _candidates() -> Iterator[tuple[str, Path]]:
    """Every `python3.N` on PATH, then pyenv's versions: its shims are there for absent ones too."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    root = _pyenv_root()
    if root is not None:
        folders += sorted(root.glob("versions/*/bin"))
    for folder in folders:
        if not folder.is_dir():
            continue
        for path in sorted(folder.glob("python3.*")):
            match = NAME.match(path.name)
            if match and (3, int(match.group(1))) >= OLDEST:
                yield f"3.{match.group(1)}", path


def _pyenv_root() -> Path | None:
    pyenv = shutil.which("pyenv")
    if pyenv is None:
        return None
    answer = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=False)
    return Path(answer.stdout.strip()) if answer.returncode == 0 else None


def _probe(path: Path) -> Interpreter:
    """Run the interpreter once; RuntimeError says in one line why it will not do."""
    try:
        answer = subprocess.run(
            [str(path), "-c", PROBE],
            capture_output=True,
            text=True,
            timeout=PROBE_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"does not run: {error}"
        raise RuntimeError(message) from error
    if answer.returncode != 0:
        said = answer.stderr.strip().splitlines() or ["no output"]
        raise RuntimeError(said[-1] if "Error" in said[-1] else said[0])
    minor, executable = answer.stdout.strip().split(maxsplit=1)
    return Interpreter(minor, executable)
