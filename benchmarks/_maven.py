"""Java services of an application, built as a user would: the library is installed first."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "java"
#: A local repository that nobody else writes to: another tree of this project may install its
#: library into the user's, while services here run with theirs.
REPOSITORY = ROOT / "build" / "java-services" / "repository"
_USERS = Path.home() / ".m2" / "repository"
#: What services depend on. All is installed at once: jars do not change while services run.
_MODULES = (
    *("bom", "spring-boot-starter", "grpc", "mysql", "mongodb", "redis", "rabbitmq", "testing"),
)
_TIMEOUT_S = 900.0
_MAVEN = ("mvn", "--batch-mode", "--no-transfer-progress", "--quiet")


class MavenError(Exception):
    """There is no Maven, or it failed; the message says why."""


def build(services: Path, *, library: bool, other: str = "", also: Sequence[Path] = ()) -> None:
    """Build services, with the library or without, unless they are built of what is there.

    Args:
        services: the folder of their `pom.xml`, which knows `-Dbaseline`.
        library: whether they use the library.
        other: what they use in its place; their `pom.xml` knows a property of that name.
        also: files elsewhere of which they are built.

    Raises:
        MavenError: there is no Maven, or it failed.
    """
    with _locked():
        _seed_repository()
        installed = ""
        if library:
            modules = ",".join(f"antipode-{it}" for it in _MODULES)
            installed = digest(LIBRARY)
            options = ("-Dmaven.test.skip=true", "-Dspotless.check.skip=true")
            _once("library", installed, LIBRARY, "install", *options, "-pl", modules, "-am")
        variant = "antipode" if library else other or "baseline"
        name = f"{services.relative_to(ROOT).as_posix().replace('/', '-')}-{variant}"
        without = () if library else ("-Dbaseline", *((f"-D{other}",) if other else ()))
        state = "".join(hashlib.sha256(it.read_bytes()).hexdigest() for it in also)
        _once(name, digest(services) + state + installed, services, "compile", *without)


def test(services: Path, module: str, *settings: str) -> None:
    """Run the tests of a service, which is built with the library.

    Args:
        services: the folder of its parent's `pom.xml`.
        module: the folder of its own, below that.
        settings: system properties of the tests, as ``name=value``.

    Raises:
        MavenError: a test failed, or Maven did; the message has what it said.
    """
    build(services, library=True)
    with _locked():
        _maven(services, "test", "--projects", module, *(f"-D{it}" for it in settings))


def class_path(module: Path, variant: str) -> str:
    """The class path of a service that is built.

    Args:
        module: the folder of its `pom.xml`.
        variant: `antipode`, `baseline`, or what it uses in place of the library.
    """
    built = module / "target" / variant
    return f"{built / 'classes'}:{(built / 'class-path').read_text(encoding='utf-8')}"


def agent() -> Path:
    """OpenTelemetry's Java agent, of the release that the library is tested with.

    Raises:
        MavenError: it cannot be fetched.
    """
    text = (LIBRARY / "pom.xml").read_text(encoding="utf-8")
    found = re.search(r"<opentelemetry-agent.version>([^<]+)<", text)
    version = found[1] if found else ""
    name = "opentelemetry-javaagent"
    jar = REPOSITORY.joinpath("io/opentelemetry/javaagent", name, version, f"{name}-{version}.jar")
    if not jar.exists():
        artifact = f"-Dartifact=io.opentelemetry.javaagent:{name}:{version}"
        _maven(LIBRARY, "--non-recursive", "dependency:get", artifact, "-Dtransitive=false")
    return jar


def digest(folder: Path) -> str:
    """A digest of every file of which Maven builds."""
    found = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        relative = file.relative_to(folder)
        used = relative.name == "pom.xml" or "src" in relative.parts
        if used and not {"test", "target"} & set(relative.parts) and file.is_file():
            found.update(relative.as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()


@contextmanager
def _locked() -> Iterator[None]:
    """For the block no other process builds: it may be about to build the same."""
    REPOSITORY.parent.mkdir(parents=True, exist_ok=True)
    with REPOSITORY.with_name("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _once(name: str, state: str, folder: Path, *arguments: str) -> None:
    """Call Maven, unless it was called in this state before."""
    stamp = REPOSITORY.with_name(f"{name}.built")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == state:
        return
    _maven(folder, *arguments)
    stamp.write_text(state, encoding="utf-8")


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
        raise MavenError("there is no Maven: `make java` installs it, or says how")
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
        raise MavenError(f"mvn {' '.join(arguments)} failed in {folder}:\n{said}")
