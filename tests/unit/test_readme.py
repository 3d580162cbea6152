"""What the README and the start page show works, and what they point at is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
START = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
#: The worked example's code, whose tests run it.
EXAMPLE = ROOT / "examples" / "posts"
GUIDE = (ROOT / "docs" / "guides" / "worked-example.md").read_text(encoding="utf-8")


def blocks(text: str) -> list[str]:
    """The code of Python that a page shows."""
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def test_two_lines_come_first() -> None:
    """What a service needs is shown before the example, in the README and so on the start page."""
    lines, example = blocks(README)
    assert lines.splitlines() == ["import antipode", "", "antipode.setup()"]
    assert "embedded" in example
    assert README.index("ANTIPODE_DATASTORES") < README.index(lines) < README.index(example)
    assert START.count('--8<-- "README.md:first"') == 1
    assert blocks(START[: START.index("README.md:first")]) == []


def test_the_example_runs_and_shows_what_the_text_says() -> None:
    """As a newcomer would: the code block in a process of its own, in at most 25 lines."""
    _, code = blocks(README)
    assert len(code.splitlines()) <= 25
    shown = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.splitlines()
    assert shown[:2] == ["without a barrier: None", "with a barrier: b'hello'"]
    waited = re.fullmatch(r"waited (\d+) ms", shown[2])
    assert waited is not None
    assert 50 <= int(waited[1]) <= 5000


@pytest.mark.parametrize("name", ["us_api.py", "eu_tasks.py"])
def test_the_worked_example_shows_what_its_tests_run(name: str) -> None:
    """The writer and the reader are on the page as they are, not copied onto it."""
    assert (EXAMPLE / name).is_file()
    assert f'--8<-- "examples/posts/{name}"' in GUIDE


def test_the_barrier_of_the_start_page_is_what_its_tests_run() -> None:
    """Each of its lines is in the file of the worked example, in the same order."""
    (block,) = blocks(START)
    text = (EXAMPLE / "eu_tasks.py").read_text(encoding="utf-8")
    rest = iter([line.strip() for line in text.splitlines()])
    shown = [line.strip() for line in block.splitlines()]
    assert [line for line in shown if line and line not in rest] == []


def test_the_links_lead_somewhere() -> None:
    """Every file that the README names exists."""
    targets = re.findall(r"\]\(([^):]+)\)", README)
    assert len(targets) > 10
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_commands_are_verbs_of_the_makefile() -> None:
    """Each ``make`` verb of CONTRIBUTING and of the guides is there."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    pages = [ROOT / "CONTRIBUTING.md", *(ROOT / "docs" / "guides").glob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    verbs = set(re.findall(r"`make ([a-z]+)", text))
    there = set(re.findall(r"^([a-z]+)\b.*:", makefile, flags=re.MULTILINE))
    assert len(verbs) > 10
    assert verbs - there == set()
