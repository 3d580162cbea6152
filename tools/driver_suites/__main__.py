"""Runs the own tests of database drivers plain and instrumented, and compares.

``python -m tools.driver_suites [NAME ...]``, all by default: a test that passes plain and fails
instrumented is printed, and the exit status is 1. What differs is run twice more in both ways, so
that a test which fails by chance is told from one that fails because of the library.

The tests are those of the source archive of the installed release, which pip fetches into
``XDG_CACHE_HOME``; the servers are real ones, as of `antipode_testing`. Clients of AWS run
against an emulator, moto: boto3 by its tests, aiobotocore by its own. botocore's own tests need
no server.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import antipode_testing

from .suites import ACCOUNT, SUITES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .suites import Suite

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIMIT_S = 1200
_AGAIN = 2
_OF_DJANGO = re.compile(r"^\w+ \(([\w.]+)\)(?:\n.*)?? \.\.\. (ok|FAIL|ERROR|skipped)", re.MULTILINE)
_DJANGO_SETTINGS = """\
DATABASES = {{
    alias: {{
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "{account}", "USER": "{account}", "PASSWORD": "{account}",
        "HOST": "{host}", "PORT": "{port}",
        "TEST": {{"NAME": "test_" + alias}},
    }}
    for alias in ("default", "other")
}}
SECRET_KEY = "of servers on loopback"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
"""


def cache() -> Path:
    """Where archives stay, outside of the clone."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "antipode-driver-suites"


def release_of(suite: Suite) -> str:
    """The release that is installed, or that is named."""
    return suite.release or version(suite.installed or suite.distribution)


def unpacked(suite: Suite, folder: Path) -> None:
    """Put what *suite* needs of its archive into *folder*.

    Raises:
        subprocess.CalledProcessError: pip could not fetch it.
    """
    release = f"{suite.distribution}=={release_of(suite)}"
    held = cache() / release
    if not list(held.glob("*.tar.gz")):
        held.mkdir(parents=True, exist_ok=True)
        fetch = ["download", "--quiet", "--no-deps", "--no-binary", ":all:", release]
        _pip(*fetch, "--dest", str(held))
    (archive,) = held.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    (top,) = folder.iterdir()
    for wanted in suite.folders:
        shutil.move(top / wanted, folder / wanted)
    shutil.rmtree(top)


def _pip(*arguments: str) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    subprocess.run(pip, check=True)


@contextmanager
def serving(suite: Suite) -> Iterator[dict[str, str]]:
    """The server of *suite*; how its address is spelled."""
    if not suite.topology:
        yield {"host": "", "port": "", "account": ACCOUNT}
        return
    with getattr(antipode_testing, suite.topology)() as topology:
        if suite.topology == "PostgreSQLTopology":  # The suites make databases and extensions.
            topology.execute(f"ALTER ROLE {topology.user} SUPERUSER")
            for statement in suite.statements:
                topology.execute(statement)
        host, port = topology.primary
        yield {"host": str(host), "port": str(port), "account": ACCOUNT}


class Run:
    """The ways in which one suite is run.

    Args:
        name: of the suite.
        suite: what it is.
        folder: with its tests.
        place: how the address of its server is spelled.
    """

    def __init__(self, name: str, suite: Suite, folder: Path, place: Mapping[str, str]) -> None:
        self._name, self._suite, self._folder, self._place = name, suite, folder, place

    def outcomes(self, *, instrumented: bool, only: frozenset[str] = frozenset()) -> dict[str, str]:
        """How each test ended: ``passed``, ``failed`` or ``skipped``.

        Args:
            instrumented: whether the driver is.
            only: the tests that are run; empty for all.

        Raises:
            SystemExit: the suite itself did not run.
        """
        told = self._folder / "outcomes.txt"
        told.unlink(missing_ok=True)
        log = (
            self._folder.parent / f"{self._name}-{'instrumented' if instrumented else 'plain'}.log"
        )
        with log.open("wb") as output:
            subprocess.run(
                self._command(only),
                cwd=self._folder,
                env=self._environment(told, instrumented=instrumented),
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=LIMIT_S,
                check=False,
            )
        found = self._of_django(log) if self._name == "django" else _read(told)
        if not found:
            raise SystemExit(f"error: the suite of {self._name} did not run: see {log}")
        return found

    def _command(self, only: frozenset[str]) -> list[str]:
        given = [each.format(**self._place) for each in self._suite.arguments]
        if self._name == "django":
            settings = self._folder / "tests" / "suite_settings.py"
            settings.write_text(_DJANGO_SETTINGS.format(**self._place), encoding="utf-8")
            labels = sorted(only) or given
            options = ["--settings", "suite_settings", "--parallel", "1", "-v", "2", "--noinput"]
            return [sys.executable, "tests/runtests.py", *options, *labels]
        if only:
            files = {name.partition("::")[0] for name in only}
            given = [each for each in given if not each.startswith("test")] + sorted(files)
        return [sys.executable, "-m", "pytest", "-q", "-p", "outcomes", *given]

    def _environment(self, told: Path, *, instrumented: bool) -> dict[str, str]:
        paths = [HERE, self._folder / "needs", ROOT, ROOT / "shims"]
        made = {
            **os.environ,
            **{name: value.format(**self._place) for name, value in self._suite.variables.items()},
            "SUITE_OUTCOMES": str(told),
        }
        if instrumented:
            paths.insert(0, HERE / "instrumented")
            made["SUITE_DRIVER"] = self._name
            made["ANTIPODE_DATASTORES"] = self._suite.rule.format(**self._place)
            made["ANTIPODE_BARRIERS"] = "auto"
        made["PYTHONPATH"] = os.pathsep.join(map(str, paths))
        return made

    @staticmethod
    def _of_django(log: Path) -> dict[str, str]:
        words = {"ok": "passed", "FAIL": "failed", "ERROR": "failed", "skipped": "skipped"}
        text = log.read_text(encoding="utf-8", errors="replace")
        return {name: words[word] for name, word in _OF_DJANGO.findall(text)}


def _read(told: Path) -> dict[str, str]:
    if not told.exists():
        return {}
    lines = told.read_text(encoding="utf-8").splitlines()
    return {name: outcome for outcome, _, name in (line.partition(" ") for line in lines)}


def differing(suite: Suite, run: Run) -> list[str]:
    """The tests that pass plain and not instrumented, every time; prints how many ran.

    Raises:
        SystemExit: the suite did not run.
    """
    plain = run.outcomes(instrumented=False)
    ours = run.outcomes(instrumented=True)
    passed = [name for name, outcome in plain.items() if outcome == "passed"]
    print(f"  {len(passed)} of {len(plain)} tests pass plain", flush=True)
    left = {
        name
        for name in passed
        if ours.get(name) != "passed"
        and not any(fnmatch.fnmatch(name, pattern) for pattern in suite.differ)
    }
    for _ in range(_AGAIN):
        if not left:
            break
        print(f"  {len(left)} differ: they run again", flush=True)
        plain = run.outcomes(instrumented=False, only=frozenset(left))
        ours = run.outcomes(instrumented=True, only=frozenset(left))
        left = {n for n in left if plain.get(n) == "passed" and ours.get(n) != "passed"}
    return sorted(left)


def main() -> int:
    """Run the suites that are named."""
    parser = argparse.ArgumentParser(prog="python -m tools.driver_suites", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SUITES))
    parser.add_argument("--keep", type=Path, help="a folder for the tests and what they print")
    given = parser.parse_args()
    if unknown := set(given.names) - set(SUITES):
        parser.error(f"no suite {', '.join(sorted(unknown))}: there are {', '.join(SUITES)}")
    bad = 0
    for name in given.names or SUITES:
        suite = SUITES[name]
        print(f"{name} {release_of(suite)}", flush=True)
        began_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="driver-suites-") as temporary:
            folder = (given.keep or Path(temporary)).resolve() / name
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            unpacked(suite, folder)
            if suite.needs:
                target = ["--target", str(folder / "needs")]
                _pip("install", "--quiet", "--no-deps", *target, *suite.needs)
            with serving(suite) as place:
                found = differing(suite, Run(name, suite, folder, place))
        for test in found:
            print(f"  FAILS instrumented alone: {test}")
        took_s = time.monotonic() - began_s
        print(f"  {'differs' if found else 'the same instrumented'}, in {took_s:.0f} s", flush=True)
        bad += bool(found)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
