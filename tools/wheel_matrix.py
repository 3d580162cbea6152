"""Test the built wheels, not the tree: on every Python here, over several OpenTelemetry releases.

Builds sdists and wheels, copies the tests to a folder without the packages, and runs them there in
one fresh virtual environment per interpreter, two at a time. The scope and propagation tests run
again over older OpenTelemetry releases; over the oldest of all that pyproject.toml admits,
everything does. CI runs the quick tests on two Pythons. What asyncio does with a cancellation
differs between Pythons: the random cancellations run on each but the one that runs this, in CI on
the first such.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tools.interpreters import Interpreter, find_interpreters

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "matrix"
# What the copy leaves out, so that `import antipode` can only find the wheel.
LEFT_OUT = {"antipode", "antipode_cli", "shims", "testing", "build", "dist", "node_modules"}
# Releases between the oldest (in pyproject.toml) and the newest (what pip takes).
OPENTELEMETRY_BETWEEN = ("1.27.0", "1.35.0")
# What the oldest environment takes at its lower bound.
WITH_OLDEST = (
    "opentelemetry-api",
    "opentelemetry-sdk",
    "redis",
    "pika",
    "aio-pika",
    "boto3",
    "pytest",
    "pytest-asyncio",
    "pytest-timeout",
    "hypothesis",
    "jsonschema",
)
SUITES = ("tests/unit", "tests/conformance")
# The first needs extras that `test` does not have; the second runs the tests of other languages.
NOT_OF_THE_WHEEL = ("tests/unit/benchmarks", "tests/conformance/test_native.py")
PROPAGATION_FILES = re.compile(r"scope|propagat|baggage|handle|instrument|fork|telemetry")
# What they need beside the extra `test`.
OF_CANCELLATIONS = "aiobotocore,asyncpg"
CANCELLATIONS = ("-m", "tests.programs", "--only", "cancel", "--steps", "300", "--jobs", "2")
#: While one is installed another is tested.
AT_ONCE = 2
INSTALL_LIMIT_S = 600
TESTS_LIMIT_S = 900


@dataclass(frozen=True)
class Environment:
    """One virtual environment: its interpreter, what it pins, its tests, whether it cancels."""

    name: str
    interpreter: Interpreter
    pins: tuple[str, ...]
    tests: tuple[str, ...]
    cancels: bool = False


class CommandFailedError(RuntimeError):
    """A command failed or took too long; the message is the end of what it said."""


def oldest_pins() -> tuple[str, ...]:
    """The oldest releases that pyproject.toml admits of what library and tests need, as pins."""
    projects = (ROOT / "pyproject.toml", ROOT / "testing" / "pyproject.toml")
    text = "".join(path.read_text(encoding="utf-8") for path in projects)
    floors = {name: re.search(rf'"{name}>=([\d.]+)"', text) for name in WITH_OLDEST}
    unbounded = [name for name, found in floors.items() if found is None]
    if unbounded:
        message = f"error: pyproject.toml gives no lower bound for {', '.join(unbounded)}"
        raise SystemExit(message)
    return tuple(f"{name}=={found.group(1)}.*" for name, found in floors.items() if found)


def propagation_tests(tree: Path) -> tuple[str, ...]:
    """The test files that exercise OpenTelemetry itself."""
    files = sorted(
        str(path.relative_to(tree))
        for suite in SUITES
        for path in (tree / suite).rglob("test_*.py")
        if PROPAGATION_FILES.search(path.stem)
        and not any(path.is_relative_to(tree / left) for left in NOT_OF_THE_WHEEL)
    )
    if not files:
        message = f"error: no test file under {', '.join(SUITES)} is about scopes or propagation"
        raise SystemExit(message)
    return tuple(files)


def plan(interpreters: list[Interpreter], tree: Path) -> list[Environment]:
    """Every interpreter with the newest OpenTelemetry, then the older releases on one of them."""
    suites = tuple(suite for suite in SUITES if (tree / suite).is_dir())
    this = "{}.{}".format(*sys.version_info)
    environments = [
        Environment(f"py{i.minor}", i, (), suites, cancels=i.minor != this) for i in interpreters
    ]
    about_otel = propagation_tests(tree)
    first = interpreters[0]
    environments.append(Environment("oldest", first, oldest_pins(), suites))
    for release in OPENTELEMETRY_BETWEEN:
        pins = (f"opentelemetry-api=={release}", f"opentelemetry-sdk=={release}")
        environments.append(Environment(f"otel{release}", first, pins, about_otel))
    return environments


def ends_of(environments: list[Environment], interpreters: list[Interpreter]) -> list[Environment]:
    """Those of the oldest and the newest Python, of which one cancels."""
    names = {f"py{interpreters[0].minor}", f"py{interpreters[-1].minor}"}
    ends = [each for each in environments if each.name in names]
    first = next((each for each in ends if each.cancels), None)
    return [replace(each, cancels=each is first) for each in ends]


def build_wheels() -> tuple[Path, Path]:
    """Build the sdist and, from it, the wheel: of the library, and of what tests with it."""
    dist = WORK / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    for project in (ROOT, ROOT / "testing"):
        command = [sys.executable, "-m", "build", "--outdir", str(dist), str(project)]
        run_logged(command, ROOT, WORK / "build.log", INSTALL_LIMIT_S)
    (library,) = dist.glob("antipode_xcy-*.whl")
    (testing,) = dist.glob("antipode_xcy_testing-*.whl")
    return library, testing


def copy_tree() -> Path:
    """Copy what the tests read, without the packages under test."""
    tree = WORK / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    for item in ROOT.iterdir():
        if item.name in LEFT_OUT or item.name.startswith("."):
            continue
        if item.is_dir():
            shutil.copytree(item, tree / item.name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(item, tree / item.name)
    return tree


def run_logged(command: list[str], cwd: Path, log: Path, limit_s: float) -> str:
    """Run a command, keep what it said, and raise with the end of it if it failed."""
    with log.open("a", encoding="utf-8") as out:
        out.write(f"$ {' '.join(command)}\n")
        out.flush()
        try:
            code = subprocess.run(
                command, cwd=cwd, stdout=out, stderr=subprocess.STDOUT, timeout=limit_s, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            code = None
            out.write(f"no end within {limit_s} s\n")
    said = log.read_text(encoding="utf-8", errors="replace")
    if code != 0:
        message = f"{said[-6000:]}\nfailed: {' '.join(command)}\nall of it: {log}"
        raise CommandFailedError(message)
    return said


def run_environment(
    environment: Environment, wheels: tuple[Path, Path], tree: Path, tier: str | None
) -> str:
    """Make the environment, install the wheels, run its tests of a tier or all; the last line."""
    venv = WORK / environment.name
    log = WORK / f"{environment.name}.log"
    log.unlink(missing_ok=True)
    shutil.rmtree(venv, ignore_errors=True)
    python = str(venv / "bin" / "python")
    make = [environment.interpreter.path, "-m", "venv", str(venv)]
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    run_logged(make, WORK, log, INSTALL_LIMIT_S)
    library, testing = wheels
    constraints = ["-c", str(ROOT / "tools" / "constraints.txt")]
    wanted = [*constraints, f"{library}[test,session]", str(testing), *environment.pins]
    run_logged([*pip, *wanted], WORK, log, INSTALL_LIMIT_S)
    run_logged([str(venv / "bin" / "antipode"), "explain", "1"], tree, log, TESTS_LIMIT_S)
    options = ["-q", "-rs", "-n", "2", "-p", "no:cacheprovider"]
    options += [f"--ignore={left}" for left in NOT_OF_THE_WHEEL]
    options += [f"--tier={tier}"] if tier else []
    pytest = [python, "-m", "pytest", *options, *environment.tests]
    said = run_logged(pytest, tree, log, TESTS_LIMIT_S)
    if environment.cancels:
        more = ["aio-pika", f"{library}[{OF_CANCELLATIONS}]"]
        run_logged([*pip, *constraints, *more], WORK, log, INSTALL_LIMIT_S)
        run_logged([python, *CANCELLATIONS], tree, log, TESTS_LIMIT_S)
    return said.strip().splitlines()[-1]


def arguments_of_the_line() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these environments, as the table names them")
    parser.add_argument(
        "--ends",
        action="store_true",
        help="only the quick tests on the oldest and the newest Python, for CI",
    )
    parser.add_argument("--list", action="store_true", help="show the environments, run nothing")
    return parser.parse_args()


def main() -> int:
    """Run the whole matrix, or the environments named."""
    arguments = arguments_of_the_line()
    WORK.mkdir(parents=True, exist_ok=True)
    interpreters, skipped = find_interpreters()
    for reason in skipped:
        print(f"skipped: {reason}")
    if not interpreters:
        print("error: no complete Python of 3.10 or later", file=sys.stderr)
        return 1
    tree = copy_tree()
    environments = plan(interpreters, tree)
    chosen = (
        ends_of(environments, interpreters)
        if arguments.ends
        else [e for e in environments if not arguments.names or e.name in arguments.names]
    )
    if arguments.list:
        for environment in chosen:
            print(
                f"{environment.name:12} {environment.interpreter.path} {' '.join(environment.pins)}"
            )
        return 0
    os.environ["PATH"] += f":/usr/sbin:/sbin:{ROOT / '.stores' / 'bin'}"
    (WORK / "build.log").unlink(missing_ok=True)
    try:
        wheels = build_wheels()
    except CommandFailedError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"built {' and '.join(wheel.name for wheel in wheels)}")
    failed: list[str] = []

    def run(environment: Environment) -> None:
        began = time.monotonic()
        try:
            last = run_environment(environment, wheels, tree, "test" if arguments.ends else None)
        except CommandFailedError as error:
            failed.append(environment.name)
            last = str(error)
        print(f"{environment.name:12} {last} [{time.monotonic() - began:.0f} s]", flush=True)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(run, chosen))
    if failed:
        print(f"error: the wheel failed in {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
