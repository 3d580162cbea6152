"""What errors tell a user to install: it can be followed as it is written."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "tools").glob("fetch_*.sh"))
_PACKAGES = ("antipode", "antipode_cli", "shims", "testing")
_HINT = re.compile(r"""pip install ["']?(antipode-xcy(?:-testing)?)\[([\w,]+)\]""")
_SCRIPT = re.compile(r"tools/fetch_\w+\.sh[^\"'`]*")


def sources() -> list[Path]:
    return [path for each in _PACKAGES for path in (ROOT / each).rglob("*.py")]


def extras(pyproject: Path) -> set[str]:
    text = pyproject.read_text(encoding="utf-8")
    table = text.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    return set(re.findall(r"^([\w-]+) = ", table, re.MULTILINE))


def test_extras_of_hints_exist() -> None:
    """Each extra that an error names is one of the distribution that it names."""
    known = {
        "antipode-xcy": extras(ROOT / "pyproject.toml"),
        "antipode-xcy-testing": extras(ROOT / "testing" / "pyproject.toml"),
    }
    found = [
        (path.name, *each) for path in sources() for each in _HINT.findall(path.read_text("utf-8"))
    ]
    assert len(found) > 20
    unknown = [each for each in found if not set(each[2].split(",")) <= known[each[1]]]
    assert not unknown


def test_scripts_of_hints_exist_and_have_a_folder() -> None:
    """A script that an error names is in the checkout, and fetches to where tests look."""
    found = [each for path in sources() for each in _SCRIPT.findall(path.read_text("utf-8"))]
    assert len(found) >= 4
    for hint in found:
        script, *arguments = hint.split()
        assert (ROOT / script).is_file()
        assert arguments[:1] == [".stores"], hint


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_without_arguments_says_what_is_missing(script: Path, tmp_path: Path) -> None:
    """It ends in an error of its own, or in its usage, where there is nothing to fetch with."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for tool in ("bash", "mkdir", "readlink", "uname", "flock", "cat", "mktemp", "rm"):
        found = next(path for each in ("/bin", "/usr/bin") if (path := Path(each, tool)).exists())
        (bin_ / tool).symlink_to(found)
    ran = subprocess.run(
        ["/bin/bash", str(script)],
        cwd=tmp_path,
        env={"PATH": str(bin_), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode
    assert "unbound variable" not in ran.stderr
    assert re.match(r"error: |usage: ", ran.stderr), ran.stderr
