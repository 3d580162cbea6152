"""What Maven Central asks of the POMs that are published, and one version for all modules."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

JAVA = Path(__file__).resolve().parents[2] / "java"
M = "{http://maven.apache.org/POM/4.0.0}"


def pom(folder: Path) -> ET.Element:
    """The POM in *folder*."""
    return ET.parse(folder / "pom.xml").getroot()  # noqa: S314 - our own file


def texts(found: ET.Element, path: str) -> list[str]:
    """The texts of the elements at *path*, in the names of POMs."""
    named = "/".join(f"{M}{name}" for name in path.split("/"))
    return [str(each.text) for each in found.findall(named)]


MODULES = texts(pom(JAVA), "modules/module")
#: Programs of our tests are not deployed.
PUBLISHED = sorted(
    module
    for module in MODULES
    if texts(pom(JAVA / module), "properties/maven.deploy.skip") != ["true"]
)


@pytest.mark.parametrize("folder", [".", "antipode-bom"])
def test_who_made_it(folder: str) -> None:
    """What modules inherit, and what stands alone, says whose it is and under what terms."""
    found = pom(JAVA / folder)
    for path in ("url", "licenses/license/name", "developers/developer/name", "scm/connection"):
        assert len(texts(found, path)) == 1, path
    (developer,) = texts(found, "developers/developer/name")
    assert "@" not in developer


@pytest.mark.parametrize("module", PUBLISHED)
def test_what_it_is(module: str) -> None:
    """Each has a name and a description of its own."""
    found = pom(JAVA / module)
    assert texts(found, "artifactId") == [module]
    assert len(texts(found, "name")) == len(texts(found, "description")) == 1


def test_one_version() -> None:
    """The BOM has the version of the parent, and names every module that is published."""
    bom = pom(JAVA / "antipode-bom")
    assert texts(bom, "version") == texts(pom(JAVA), "version")
    named = texts(bom, "dependencyManagement/dependencies/dependency/artifactId")
    assert sorted(named) == [module for module in PUBLISHED if module != "antipode-bom"]


def test_nothing_is_signed_or_uploaded_unasked() -> None:
    """Signing is a profile that nothing switches on, and no POM names a place to upload to."""
    for folder in [".", *MODULES]:
        text = (JAVA / folder / "pom.xml").read_text(encoding="utf-8")
        assert "distributionManagement" not in text
        assert "activeByDefault" not in text
        outside, _, inside = text.partition("<id>sign</id>")
        assert "maven-gpg-plugin" not in outside
        assert ("maven-gpg-plugin" in inside) == (folder in (".", "antipode-bom"))
