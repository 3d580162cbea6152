"""The Java services, built as a user would: the library is installed, and they depend on it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from ._variants import TrainTicketError

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "java"
SERVICES = Path(__file__).resolve().parent / "java"
#: A local repository that nobody else writes to: another tree of this project may install its
#: library into the user's, while services here run with theirs.
REPOSITORY = ROOT / "build" / "train-ticket" / "repository"
_USERS = Path.home() / ".m2" / "repository"
#: What the services depend on, and what these modules do.
_MODULES = ("bom", "spring-boot-starter", "mysql", "mongodb", "redis", "rabbitmq")
_TIMEOUT_S = 900.0
_MAVEN = ("mvn", "--batch-mode", "--no-transfer-progress", "--quiet")


def build(*, library: bool) -> None:
    """Build the services, with the library or without, unless they are built of what is there.

    Raises:
        TrainTicketError: there is no Maven, or it failed.
    """
    REPOSITORY.parent.mkdir(parents=True, exist_ok=True)
    with REPOSITORY.with_name("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Another process may be about to build the same.
        _seed_repository()
        installed = ""
        if library:
            modules = ",".join(f"antipode-{it}" for it in _MODULES)
            installed = digest(LIBRARY)
            options = ("-Dmaven.test.skip=true", "-Dspotless.check.skip=true")
            _once("library", installed, LIBRARY, "install", *options, "-pl", modules, "-am")
        variant = "antipode" if library else "baseline"
        without = () if library else ("-Dbaseline",)
        _once(variant, digest(SERVICES) + installed, SERVICES, "compile", *without)


def _once(name: str, state: str, folder: Path, *arguments: str) -> None:
    """Call Maven, unless it was called in this state before."""
    stamp = REPOSITORY.with_name(f"{name}.built")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == state:
        return
    _maven(folder, *arguments)
    stamp.write_text(state, encoding="utf-8")


def class_path(module: str, *, library: bool) -> str:
    """The class path of a service that is built."""
    built = SERVICES / module / "target" / ("antipode" if library else "baseline")
    return f"{built / 'classes'}:{(built / 'class-path').read_text(encoding='utf-8')}"


def digest(folder: Path) -> str:
    """A digest of every file of which Maven builds."""
    found = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        relative = file.relative_to(folder)
        used = relative.name == "pom.xml" or "src" in relative.parts
        if used and not {"test", "target"} & set(relative.parts) and file.is_file():
            found.update(relative.as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()


def _seed_repository() -> None:
    """Begin with what the user has of others: it need not be downloaded again."""
    if REPOSITORY.exists():
        return
    if not _USERS.exists():
        REPOSITORY.mkdir()
        return
    copied = REPOSITORY.with_name(f"repository-{os.getpid()}")
    ours = str(_USERS / "io")
    shutil.copytree(
        _USERS, copied, ignore=lambda folder, _: {"antipode"} if folder == ours else set()
    )
    copied.rename(REPOSITORY)


def _maven(folder: Path, *arguments: str) -> None:
    if shutil.which("mvn") is None:
        raise TrainTicketError("there is no Maven: `make java` installs it, or says how")
    done = subprocess.run(
        [*_MAVEN, f"-Dmaven.repo.local={REPOSITORY}", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        # What is wrong comes first; stack traces and advice follow.
        said = "\n".join((done.stdout + done.stderr).splitlines()[:30])
        raise TrainTicketError(f"mvn {' '.join(arguments)} failed in {folder}:\n{said}")
