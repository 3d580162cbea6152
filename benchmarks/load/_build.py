"""The driver, built once of what the sources are now."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

SOURCES = Path(__file__).with_name("driver")
_TIMEOUT_S = 1200.0


class LoadDriverError(Exception):
    """The driver cannot be built, or it failed; the message says why."""


def driver() -> Path:
    """The program, which is built unless it has been.

    Raises:
        LoadDriverError: there is no Go, or it failed.
    """
    folder = _cache_directory()
    built = folder / f"load-driver-{_digest()}"
    with folder.joinpath("load-driver.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Another benchmark may be about to build the same.
        if not built.exists():
            _build(built)
    return built


def _build(built: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise LoadDriverError(
            "there is no Go, which builds the load driver: install it (golang-go of Debian 13 or "
            "Ubuntu 24.04, `brew install go`, or https://go.dev/dl); it takes 1.22 or later"
        )
    unfinished = built.with_suffix(".part")
    done = subprocess.run(
        [go, "build", "-mod=readonly", "-trimpath", "-o", str(unfinished), "."],
        cwd=SOURCES,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise LoadDriverError(f"go build failed in {SOURCES}:\n{done.stderr.strip()[:2000]}")
    unfinished.replace(built)


def _digest() -> str:
    found = hashlib.sha256()
    for file in sorted([*SOURCES.glob("*.go"), *SOURCES.glob("go.*")]):
        found.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def _cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    path = (Path(base) if base else Path.home() / ".cache") / "antipode-benchmarks"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path
