"""Which MySQL and MariaDB this machine has, and a new data directory of each, made only once."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from antipode_testing._errors import ServerFailed, ServerMissing
from antipode_testing._guard import GUARD, kill_group
from antipode_testing._interrupt import uninterrupted
from antipode_testing._process import SERVER_DIRECTORIES, find_executable, inherited

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

INITIALIZE_TIMEOUT_S = 120.0
VERSION_TIMEOUT_S = 30.0
INSTALL_MARIADB = "apt-get install mariadb-server"
OUTPUT_TAIL_CHARS = 2_000


@dataclass(frozen=True)
class Installation:
    """A server program of this machine.

    Attributes:
        server: the program.
        version: what it says of itself.
        initializer: the command that makes a data directory, whose path comes last.
    """

    server: Path
    version: str
    initializer: tuple[str, ...]

    def template(self) -> Path:
        """A data directory to copy: of a server that never ran, whose root has no password.

        It is kept in the user's cache directory, one for each version and way to make it.
        """
        text = "\n".join((self.version, *self.initializer))
        cache = _cache_directory()
        made = cache / f"{self.server.name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        with _alone(cache):
            if not made.exists():
                partial = made.with_suffix(".partial")
                shutil.rmtree(partial, ignore_errors=True)
                try:
                    _initialize(self.initializer, partial)
                    partial.rename(made)
                finally:
                    shutil.rmtree(partial, ignore_errors=True)
        return made


@lru_cache(maxsize=1)
def mysql() -> Installation:
    """MySQL's own server, not the MariaDB that is called ``mysqld`` too.

    Raises:
        ServerMissing: it is not on PATH.
    """
    for path in _on_path("mysqld"):
        version = _version(path)
        if "MariaDB" not in version:
            options = (
                "--initialize-insecure",
                "--innodb-doublewrite=OFF",
                "--innodb-flush-method=nosync",
                "--innodb-redo-log-capacity=16M",
                "--secure-file-priv=NULL",
            )
            command = (str(path), "--no-defaults", *as_this_user(), *options)
            return Installation(path, version, (*command, "--datadir="))
    raise ServerMissing(
        "no `mysqld` on PATH is MySQL's own (MariaDB's may have that name): install it from"
        " MySQL's packages, or with `tools/fetch_debian.sh .stores mysqld` in a checkout of"
        " Antipode"
    )


@lru_cache(maxsize=1)
def mariadb() -> Installation:
    """MariaDB's server.

    Raises:
        ServerMissing: it, or its initialiser, is not on PATH.
    """
    server = find_executable("mariadbd", install=INSTALL_MARIADB)
    script = find_executable("mariadb-install-db", install=INSTALL_MARIADB)
    options = ("--auth-root-authentication-method=normal", "--skip-test-db")
    command = (str(script), "--no-defaults", *as_this_user(), *options)
    return Installation(
        server, _version(server), (*command, "--innodb-log-file-size=16M", "--datadir=")
    )


def as_this_user() -> tuple[str, ...]:
    """The option without which both servers refuse to run as root."""
    return ("--user=root",) if os.geteuid() == 0 else ()


def _on_path(name: str) -> list[Path]:
    """Every executable of a name, in the order of PATH."""
    folders = [*os.environ.get("PATH", os.defpath).split(os.pathsep), *SERVER_DIRECTORIES]
    found = (shutil.which(name, path=folder) for folder in dict.fromkeys(folders) if folder)
    return [Path(path) for path in found if path is not None]


def _version(server: Path) -> str:
    done = subprocess.run(
        [str(server), "--version"],
        env=inherited(),
        capture_output=True,
        text=True,
        timeout=VERSION_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise ServerFailed(f"{server} --version failed: {done.stderr.strip()}")
    return done.stdout.strip()


def _cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    path = (Path(base) if base else Path.home() / ".cache") / "antipode-testing"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes out: two initialisations at once have been seen to fail."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _initialize(command: Sequence[str], data: Path) -> None:
    """Make a data directory."""
    # The server starts for it, and removes what other servers have at work in its own TMPDIR.
    with tempfile.TemporaryDirectory(prefix="antipode-") as temporary:
        _run(command, data, inherited() | {"TMPDIR": temporary})
    # Its unique id: a copy must get one of its own.
    (data / "auto.cnf").unlink(missing_ok=True)


def _run(command: Sequence[str], data: Path, environment: Mapping[str, str]) -> None:
    """Run it to its end; no process of it outlives an interrupt or this interpreter."""
    with uninterrupted():
        process = subprocess.Popen(
            [*command[:-1], f"{command[-1]}{data}"],
            cwd=data.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        GUARD.add(process.pid)
    try:
        output, _ = process.communicate(timeout=INITIALIZE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise ServerFailed(f"{command[0]} made no data directory in time") from None
    finally:
        kill_group(process.pid, signal.SIGKILL)
        process.communicate()
        GUARD.remove(process.pid)
    if process.returncode:
        raise ServerFailed(f"{command[0]} failed:\n{output.strip()[-OUTPUT_TAIL_CHARS:]}")
