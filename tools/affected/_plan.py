"""What is to be run for a change: files of tests and languages, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import TYPE_CHECKING

from tools.affected._needs import project
from tools.affected._reach import reached_by, tests

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What every test runs by, or with.
OF_ALL = (
    *("pyproject.toml", "testing/pyproject.toml", "Makefile", "tests/conftest.py", "tests/_*.py"),
    *("testing/antipode_testing/plugin.py", "antipode_cli/pytest_plugin.py"),
    *("tools/constraints.txt", "tools/run_tests.sh", "tools/make_venv.sh", "tools/fetch_*.sh"),
    *("tools/install_stores.sh", "tools/apt_install.sh"),
)
#: They read the whole tree, and take seconds.
ALWAYS = ("tests/tidy", "tests/unit/test_documents.py", "tests/unit/test_readme.py")
#: What no other test of tier *test* reads, where the code names it nowhere.
READ_BY_ALWAYS = (
    *("*.md", "docs/*", "java/*", "cpp/*", "tools/*", "containers/*", ".github/*", ".ci/*"),
    *("LICENSE", "mkdocs.yml", "publishing.toml", ".*ignore", ".editorconfig", ".gitattributes"),
    *("tests/durations.txt", "tests/mutants/*", "tests/typing/*", "tests/load/*"),
)
#: What the build and the tests of a language read. Files of Python beside the vectors are not read.
LANGUAGES = {
    "java": ("java/*", "docs/spec/*", "tests/conformance/*", "docs/reference/telemetry.md"),
    "cpp": ("cpp/*", "docs/spec/*", "tests/conformance/*"),
}


@dataclass
class Plan:
    """What a change reaches."""

    #: Files of tests, and why each is among them.
    files: dict[str, str] = field(default_factory=dict)
    #: Languages whose own tests run, and why.
    languages: dict[str, str] = field(default_factory=dict)
    #: Why everything runs; empty where it does not.
    everything: str = ""


def plan(changed: Iterable[str]) -> Plan:
    """What to run after a change of the files *changed*, which may be gone."""
    found = Plan()
    for file in sorted(changed):
        _add_languages(found, file)
        if reason := _reaches_all(file):
            found.everything = found.everything or reason
            found.languages = {**dict.fromkeys(LANGUAGES, reason), **found.languages}
        else:
            _add_tests(found, file)
    return found


def _add_languages(found: Plan, file: str) -> None:
    for language, read in LANGUAGES.items():
        if any(fnmatch(file, pattern) for pattern in read) and not file.endswith(".py"):
            found.languages.setdefault(language, f"{file} changed")
    if file.startswith("tools/build_"):
        found.languages.setdefault(file[len("tools/build_") : -len(".sh")], f"{file} changed")


def _reaches_all(file: str) -> str:
    """Why everything runs after a change of *file*; empty where it need not."""
    if file not in project():
        return f"{file} is gone: what needed it cannot be seen any more"
    if any(fnmatch(file, pattern) for pattern in OF_ALL):
        return f"every test runs by {file}"
    known = file.endswith("/conftest.py") or file in tests() or reached_by(file)
    if not known and not any(fnmatch(file, pattern) for pattern in READ_BY_ALWAYS):
        return f"nothing says what needs {file}"
    return ""


def _add_tests(found: Plan, file: str) -> None:
    if file.endswith("/conftest.py"):
        folder = file.removesuffix("conftest.py")
        inside = (test for test in tests() if test.startswith(folder))
        found.files.update(dict.fromkeys(inside, f"{file} changed"))
    if file in tests():
        found.files[file] = "it changed"
    for test, way in reached_by(file).items():
        found.files.setdefault(test, " by ".join([file, *reversed(way)]))
