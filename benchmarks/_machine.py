"""What figures depend on beside the options: the machine, what is installed, and the code."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import benchmarks
from antipode_testing import ServerMissing
from antipode_testing.servers.postgresql.install import programs

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(benchmarks.__file__).resolve().parents[1]
#: What a run executes; what makes pages of its result is not in it.
_MEASURED = (
    "antipode",
    "shims/antipode_shims",
    "benchmarks/post_notification",
    "benchmarks/_statistics.py",
    "benchmarks/evaluation/footprint.py",
)
_SOURCES = {".py", ".cc", ".h", ".java", ".go", ".proto", ".txt", ".xml", ".properties"}
_PACKAGES = (
    *("opentelemetry-api", "redis", "PyMySQL", "SQLAlchemy", "pymongo", "pika", "stomp.py"),
    *("boto3", "ministack"),
)
#: What prints the version of each server in its first line, somewhere.
_SERVERS = {
    "redis": ("redis-server", "--version"),
    "mysql": ("mysqld", "--version"),
    "mariadb": ("mariadbd", "--version"),
    "mongodb": ("mongod", "--version"),
    "postgresql": ("postgres", "--version"),
    "rabbitmq": ("rabbitmqctl", "version"),
}
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?")
_TIMEOUT_S = 30.0
#: How long is looked at how busy the machine is.
_LOOK_S = 0.5


@cache
def machine() -> dict[str, Any]:
    """The machine: two with the same answer count as one."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processors": os.cpu_count(),
        "model": _model(),
        "memory_gib": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def described(machine: dict[str, Any]) -> list[tuple[str, str]]:
    """A machine, as rows of a table."""
    processors = f"{machine['processors']} processors ({machine['model']})"
    return [
        ("machine", f"{processors}, {machine['memory_gib']} GiB, {machine['system']}"),
        ("Python", machine["python"]),
    ]


def in_use() -> float:
    """How many processors are in use: asked before a run begins, it is what others use.

    The time that they were not idle, over half a second from now. A load average says what was a
    minute ago, and so names the run before this one.
    """
    import psutil

    return round(psutil.cpu_percent(_LOOK_S) / 100 * (psutil.cpu_count() or 1), 2)


def _model() -> str:
    """What the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        "unknown",
    )


@cache
def code(places: tuple[str, ...] = _MEASURED, without: tuple[str, ...] = ()) -> str:
    """A digest of every file that a run executes.

    Args:
        places: files and folders of this project; of the latter sources of any language count.
        without: files among them that make pages of a result.
    """
    digest = hashlib.sha256()
    for place in places:
        path = ROOT / place
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            name = file.relative_to(ROOT).as_posix()
            if file.suffix in _SOURCES and "target" not in file.parts and name not in without:
                digest.update(name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def commit() -> str:
    """The commit, with a plus where files differ from it; empty without git."""
    try:
        named = _said("git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD")
        changed = _said("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return ""
    return named + ("+" if changed else "")


def versions(
    packages: Sequence[str] = _PACKAGES, servers: Sequence[str] = tuple(_SERVERS)
) -> dict[str, str]:
    """The client libraries and servers that are there, by name; all of them if none are given.

    Of servers that are packages, such as the emulators, the package says it.
    """
    answers = {package: _package(package) for package in packages}
    answers |= {
        f"{store} server": _server(store, _SERVERS[store]) for store in servers if store in _SERVERS
    }
    return {name: answer for name, answer in answers.items() if answer}


def _package(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _server(store: str, command: tuple[str, ...]) -> str:
    """The version that a server says of itself; Debian's mysqld may be MariaDB's, which is none."""
    try:
        if store == "postgresql":  # It lies in a wheel.
            command = (str(programs() / command[0]), *command[1:])
        line = _said(*command).partition("\n")[0]
    except (ServerMissing, OSError, subprocess.SubprocessError):
        return ""
    found = _VERSION.search(line)
    return "" if found is None or (store == "mysql" and "MariaDB" in line) else found.group()


def _said(*command: str) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        timeout=_TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout.strip()
