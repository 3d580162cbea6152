"""One file says whose the project is and where it lives; packages take it from there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tools import publishing

ROOT = Path(__file__).resolve().parents[2]
FILLED = {
    "author": "Ada",
    "contact": "ada@antipode.example",
    "repository": "https://code.example/ada/antipode",
    "documentation": "https://docs.example/antipode",
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that a release writes, in a folder of their own."""
    names = ["publishing.toml", "README.md", "cpp/CMakeLists.txt", *publishing.PYTHON]
    poms = [path.relative_to(ROOT).as_posix() for path in (ROOT / "java").glob("*/pom.xml")]
    for name in (*names, "java/pom.xml", *poms):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def fill(clone: Path) -> None:
    (clone / "publishing.toml").write_text(
        "".join(f'{name} = "{value}"\n' for name, value in FILLED.items()), encoding="utf-8"
    )


def test_the_packages_say_what_the_file_says(clone: Path) -> None:
    """What was filled in is everywhere: `python -m tools.publishing`."""
    publishing.write(clone)
    for name in (*publishing.PYTHON, *publishing.POMS):
        assert (clone / name).read_text() == (ROOT / name).read_text(), name


def test_the_file_has_every_field() -> None:
    """Nothing that a package needs is left out, and nothing is misspelt."""
    assert tuple(publishing.owner()) == publishing.FIELDS


def test_what_is_filled_in_arrives(clone: Path) -> None:
    """Names and addresses are in the metadata of both distributions and both POMs."""
    fill(clone)
    publishing.write(clone)
    for name in publishing.PYTHON:
        text = (clone / name).read_text()
        assert '\nauthors = [{ name = "Ada", email = "ada@antipode.example" }]\n' in text
        assert f'Repository = "{FILLED["repository"]}"' in text
    for name in publishing.POMS:
        text = (clone / name).read_text()
        assert "antipode.example" not in text
        assert f"<connection>scm:git:{FILLED['repository']}.git</connection>" in text
        assert "<developer><name>Ada</name></developer>" in text


def test_one_version_in_all_languages() -> None:
    """A tag is of one release."""
    assert len(set(publishing.versions().values())) == 1


def test_a_release_has_links_that_work_on_an_index(clone: Path) -> None:
    """No link of the README is relative there, and pages are those of the site."""
    fill(clone)
    publishing.release(publishing.versions()["pyproject.toml"], clone)
    links = re.findall(r"\]\(([^)]+)\)", (clone / "README.md").read_text())
    assert [link for link in links if not link.startswith("https://")] == []
    assert f"{FILLED['documentation']}/start/when-not.html" in links
    assert f"{FILLED['documentation']}/index.html" in links
    assert f"{FILLED['repository']}/blob/HEAD/SECURITY.md" in links


def test_a_release_has_the_extras_of_users_alone(clone: Path) -> None:
    """Those of developers are gone, and no other line."""
    fill(clone)
    publishing.release(publishing.versions()["pyproject.toml"], clone)
    before, after = (
        set(re.findall(r"^([\w-]+) = \[", (folder / "pyproject.toml").read_text(), re.MULTILINE))
        for folder in (ROOT, clone)
    )
    assert before - after == set(publishing.DEVELOPERS)
    assert "SNAPSHOT" not in (clone / "java" / "pom.xml").read_text()


def test_an_unfinished_release_is_refused(clone: Path) -> None:
    """Nothing is published with an empty field, or under the version of another tag."""
    version = publishing.versions(clone)["pyproject.toml"]
    (clone / "publishing.toml").write_text('author = "Ada"\n', encoding="utf-8")
    with pytest.raises(ValueError, match="contact, repository, documentation"):
        publishing.release(version, clone)
    fill(clone)
    with pytest.raises(ValueError, match=r"9\.9\.9"):
        publishing.release("9.9.9", clone)
