"""The house style, as tests: limits of size, spelling in step, nothing that belongs elsewhere."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = (
    "antipode",
    "antipode_cli",
    "shims",
    "testing",
    "benchmarks",
    "examples",
    "tests",
    "tools",
)
CLAIMS = ROOT / "testing" / "antipode_testing" / "contract"
FUNCTION_LINES = 60
# Extras that are not a datastore.
OTHER_EXTRAS = {
    *("testing", "bench", "docs", "test", "integrations-test", "dev", "examples"),
    *(
        "mysqlclient",
        "psycopg2",
        "asyncpg",
        "aiobotocore",
        "containers",
        "emulators",
        "servers",
        "cli",
    ),
}
# Guides that are not of a datastore.
OTHER_GUIDES = {
    "automatic-barriers",
    "testing",
    "containers",
    "datastores",
    "cpp",
    "post-notification",
    "telemetry",
    "dry-run",
    "checker",
    "integrations",
    "own-shim",
    "sessions",
    "streams",
    "store-events",
    "calls",
    "social-graph",
    "django",
    "worked-example",
    "java",
}
# Written apart, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
SLEEP = re.compile(r"\btime\." + r"sleep\(")
HOSTS = re.compile(
    r"\b(" + r"pypi\.org|files\.pythonhosted|registry\.npmjs|repo1?\.maven|proxy\.golang|"
    r"docker\.io|ghcr\.io|deb\.debian|archive\.ubuntu" + r")\b"
)
MACHINE_PATHS = re.compile(r"(?<![\w.])/(work|root|home/\w+|Users/\w+)/")
BINARY = {".bin", ".png", ".svg", ".ico"}


@cache
def project_files() -> tuple[Path, ...]:
    """What git tracks; in a copy without git, every file that is not made by a verb."""
    answer = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if answer.returncode == 0 and answer.stdout:
        files = [ROOT / name for name in answer.stdout.split("\0") if name]
    else:
        made = {"build", "dist", "__pycache__"}
        files = [
            path
            for path in ROOT.rglob("*")
            if not any(
                part in made or part.startswith(".") for part in path.relative_to(ROOT).parts
            )
        ]
    return tuple(sorted(path for path in files if path.is_file()))


@cache
def text_of(path: Path) -> str:
    """The text of a file."""
    return path.read_text(encoding="utf-8")


def python_files(*folders: str) -> list[Path]:
    """The Python files under these folders of the project."""
    wanted = folders or CODE
    return [
        path
        for path in project_files()
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in wanted
    ]


def functions_of(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method of a file."""
    tree = ast.parse(text_of(path), str(path))
    return [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]


def export_order(name: str) -> tuple[bool, bool, str]:
    """Constants, classes, the rest: as ruff sorts `__all__`."""
    return not name.isupper(), not name[0].isupper(), name


def where(path: Path, line: int = 0) -> str:
    """A place to click on."""
    name = path.relative_to(ROOT).as_posix()
    return f"{name}:{line}" if line else name


def places(pattern: re.Pattern[str], files: list[Path]) -> list[str]:
    """Each line of these files that the pattern matches."""
    return [
        f"{where(path, number)}: {line.strip()[:80]}"
        for path in files
        if path.suffix not in BINARY
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if pattern.search(line)
    ]


def shims() -> set[str]:
    """The datastores: the public modules and packages of `antipode_shims`."""
    folder = ROOT / "shims" / "antipode_shims"
    names = {path.relative_to(folder).parts[0] for path in python_files("shims")}
    return {name.removesuffix(".py") for name in names if not name.startswith("_")}


def integrations() -> set[str]:
    """The frameworks and clients: the public modules and packages of `antipode.integrations`."""
    folder = ROOT / "antipode" / "integrations"
    paths = [path for path in python_files("antipode") if path.is_relative_to(folder)]
    names = {path.relative_to(folder).parts[0] for path in paths}
    return {name.removesuffix(".py") for name in names if not name.startswith("_")}


@cache
def table(title: str) -> tuple[str, ...]:
    """The names that one table of pyproject.toml defines (tomllib is not in Python 3.10)."""
    body = text_of(ROOT / "pyproject.toml").split(f"[{title}]\n", 1)[1].split("\n[", 1)[0]
    return tuple(re.findall(r"^([\w-]+) = ", body, flags=re.MULTILINE))


def test_functions_are_short() -> None:
    """No function is longer than the limit, its docstring included."""
    long = [
        f"{where(path, function.lineno)}: {function.name}: {length} lines"
        for path in python_files()
        for function in functions_of(path)
        if (length := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES
    ]
    assert not long


def test_nothing_is_unfinished() -> None:
    """No file carries a note about work that is not done."""
    assert not places(UNFINISHED, list(project_files()))


def test_every_test_states_its_claim() -> None:
    """Every test function has a docstring."""
    silent = [
        where(path, function.lineno)
        for path in python_files("tests", "testing")
        if path.name.startswith("test_") or path.is_relative_to(CLAIMS)
        for function in functions_of(path)
        if function.name.startswith("test_") and not ast.get_docstring(function)
    ]
    assert not silent


def test_no_test_sleeps_to_wait() -> None:
    """No test sleeps: it polls with a deadline or uses the virtual clock."""
    assert not places(SLEEP, python_files("tests"))


def test_no_host_of_a_registry() -> None:
    """No file names the host of a package registry: each machine has its own configuration."""
    assert not places(HOSTS, list(project_files()))


def test_no_path_of_a_machine() -> None:
    """No file names a folder that is on one machine alone."""
    assert not places(MACHINE_PATHS, list(project_files()))


def test_exports_are_sorted() -> None:
    """Every `__all__` is sorted and names nothing twice."""
    wrong = []
    for path in python_files("antipode", "antipode_cli", "shims", "testing"):
        for node in ast.parse(text_of(path)).body:
            if isinstance(node, ast.Assign) and "__all__" in ast.unparse(node.targets[0]):
                names = ast.literal_eval(node.value)
                if list(names) != sorted(set(names), key=export_order):
                    wrong.append(where(path, node.lineno))
    assert not wrong


def test_modules_are_private() -> None:
    """In the core every module but the documented ones is private."""
    public = {
        path.relative_to(ROOT / "antipode").parts[0].removesuffix(".py")
        for path in python_files("antipode")
        if not path.relative_to(ROOT / "antipode").parts[0].startswith("_")
    }
    assert public == {
        *("calls", "checker", "diagnostics", "integrations", "propagation", "shim", "telemetry"),
    }


def test_licence_is_there() -> None:
    """The licence that pyproject.toml names is the one in LICENSE, whole."""
    licence = text_of(ROOT / "LICENSE")
    assert 'license = { text = "Apache-2.0" }' in text_of(ROOT / "pyproject.toml")
    assert "Version 2.0, January 2004" in licence
    assert "END OF TERMS AND CONDITIONS" in licence


def test_packages_are_typed() -> None:
    """All packages tell type checkers that they carry annotations."""
    for folder in ("antipode", "antipode_cli", "shims/antipode_shims", "testing/antipode_testing"):
        assert (ROOT / folder / "py.typed").is_file()


def test_each_datastore_has_its_extra_and_entry_point() -> None:
    """The shims, the pip extras and the entry points are spelled alike."""
    extras = set(table("project.optional-dependencies")) - OTHER_EXTRAS
    # What is spelled as neither is a mistake; an integration may need nothing.
    assert shims() <= extras <= shims() | integrations()
    assert set(table("project.entry-points.antipode_shims")) == shims()


@pytest.mark.parametrize("name", sorted(shims()))
def test_each_datastore_is_spelled_alike(name: str) -> None:
    """A shim has a guide, a place in the reference and integration tests of its own name."""
    integration = ROOT / "tests" / "integration"
    assert (ROOT / "docs" / "guides" / f"{name}.md").is_file()
    assert f"::: antipode_shims.{name}" in text_of(ROOT / "docs" / "reference" / "shims.md")
    assert (integration / name).is_dir() or list(integration.glob(f"test_{name}*.py"))


def test_guides_are_of_shims_that_exist() -> None:
    """No guide outlives its shim."""
    guides = {path.stem for path in (ROOT / "docs" / "guides").glob("*.md")}
    assert guides - {"README"} <= shims() | OTHER_GUIDES


@pytest.mark.parametrize("verb", ["demo", "check", "cpp", "java", "test", "bench", "docs"])
def test_verbs_are_the_same_everywhere(verb: str) -> None:
    """Each verb is in the Makefile with a line of help, and in CONTRIBUTING."""
    assert re.search(rf"^{verb}:.* ## ", text_of(ROOT / "Makefile"), flags=re.MULTILINE)
    assert f"`make {verb}`" in text_of(ROOT / "CONTRIBUTING.md")


def test_the_changelog_is_short() -> None:
    """A line an entry, of at most 200 characters, and none twice."""
    lines = text_of(ROOT / "CHANGELOG.md").splitlines()
    entries = [line for line in lines if line.startswith("- ")]
    assert entries
    assert len(set(entries)) == len(entries)
    assert [line for line in lines if len(line) > 200 or line.startswith("  ")] == []
