"""`make affected` runs every test that a change can make fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.affected import _reach
from tools.affected._plan import plan
from tools.affected._reach import reached_by

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = sorted((ROOT / "tests" / "mutants").glob("*.patch"))
SHIMS = ROOT / "shims" / "antipode_shims"
STORES = sorted(path.parent.name for path in SHIMS.glob("[!_]*/__init__.py"))


@pytest.fixture(scope="module", autouse=True)
def graph() -> None:
    """All code of the project is read once, before the first test."""
    _reach.users()


def selected(*files: str) -> set[str]:
    """The files of tests that run after a change of *files*."""
    found = plan(files)
    return set(_reach.tests()) if found.everything else set(found.files)


@pytest.mark.parametrize("patch", MUTANTS, ids=lambda path: path.stem)
def test_what_a_mutant_breaks_is_reached(patch: Path) -> None:
    """The tests that are known to fail by a change of a file run after it."""
    text = patch.read_text(encoding="utf-8")
    broken = re.findall(r"^\+\+\+ b/(\S+)", text, re.MULTILINE)
    named = re.search(r"^Tests: (.+)$", text, re.MULTILINE)
    assert broken
    assert named
    assert {each.partition("::")[0] for each in named[1].split()} <= selected(*broken)


@pytest.mark.parametrize("store", STORES)
def test_each_room_of_a_shim_reaches_its_tests(store: str) -> None:
    """After a change in any private room of a shim its contract and its own tests run."""
    own = re.compile(rf"tests/(contract/test_{store}|integration/{store}/test_client)\w*\.py")
    wanted = {test for test in _reach.tests() if own.match(test)}
    for room in SHIMS.joinpath(store).glob("_[!_]*.py"):
        assert wanted <= set(reached_by(room.relative_to(ROOT).as_posix())), room


@pytest.mark.parametrize(
    ("file", "test"),
    [
        ("tests/integration/redis/_clients.py", "tests/integration/redis/test_client.py"),
        ("testing/antipode_testing/servers/redis/topology.py", "tests/contract/test_redis.py"),
        ("testing/antipode_testing/contract/wait.py", "tests/contract/test_mongodb.py"),
        ("antipode/_setup/setup.py", "tests/integration/setup/test_setup.py"),
        ("antipode/integrations/httpx.py", "tests/integration/setup/test_setup.py"),
        ("antipode_cli/_explain.py", "tests/unit/test_cli_explain.py"),
        ("tests/agent/_shims/redis.py", "tests/contract/test_agent.py"),
        ("tests/conformance/L1-codec/errors-shape.json", "tests/conformance/test_codec.py"),
        ("docs/guides/redis.md", "tests/integration/redis/test_guide.py"),
        ("docs/spec/dry-run-record.schema.json", "tests/unit/test_dry_run_records.py"),
        ("tests/integration/django/_site.py", "tests/integration/django/test_ingress.py"),
        ("java/antipode-core/pom.xml", "tests/integration/mysql/test_jdbc.py"),
        ("cpp/CMakeLists.txt", "tests/integration/redis/test_hiredis.py"),
        ("tests/integration/mysql/conftest.py", "tests/integration/mysql/test_fences.py"),
    ],
)
def test_what_is_needed_otherwise_is_reached(file: str, test: str) -> None:
    """Helpers, fixtures, lazy names, programs, agents, vectors and pages that tests read count."""
    assert (ROOT / file).exists()
    assert test in selected(file)


@pytest.mark.parametrize(
    ("file", "languages"),
    [
        ("java/pom.xml", {"java"}),
        ("cpp/CMakeLists.txt", {"cpp"}),
        ("docs/spec/terms.md", {"java", "cpp"}),
        ("tests/conformance/L1-codec/errors-shape.json", {"java", "cpp"}),
        ("tests/conformance/test_codec.py", set()),
        ("shims/antipode_shims/redis/_commands.py", set()),
    ],
)
def test_languages_run_where_what_they_read_changed(file: str, languages: set[str]) -> None:
    """Java and C++ are built for their sources, the specification and its vectors alone."""
    assert set(plan([file]).languages) == languages


@pytest.mark.parametrize("file", ["pyproject.toml", "Makefile", "tests/conftest.py", "gone.py"])
def test_what_cannot_be_known_runs_everything(file: str) -> None:
    """A file that every test runs by, or that is gone, leaves nothing out, and says so."""
    found = plan([file])
    assert file in found.everything
    assert set(found.languages) == {"cpp", "java"}


def test_a_page_runs_few_tests() -> None:
    """A selection leaves out what a change cannot reach: otherwise it would be of no use."""
    page = selected("CHANGELOG.md")
    assert {file.rpartition("/")[0] for file in page} == {"tests/tidy"}
    assert len(selected("shims/antipode_shims/s3/__init__.py")) < len(_reach.tests()) / 3
    assert "tests/integration/mysql/test_fences.py" not in selected(
        "shims/antipode_shims/redis/_commands.py"
    )
