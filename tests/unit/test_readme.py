"""What the README shows works, and what it points at is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_the_example_runs_and_shows_what_the_text_says() -> None:
    """As a newcomer would: the code block in a process of its own, in at most 25 lines."""
    code = BLOCKS[1]
    assert len(code.splitlines()) <= 25
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()
    assert shown[:2] == ["without a barrier: None", "with a barrier: b'hello'"]
    waited = re.fullmatch(r"waited (\d+) ms", shown[2])
    assert waited is not None
    assert 50 <= int(waited[1]) <= 5000


def test_the_second_example_is_what_its_tests_run() -> None:
    """Each of its lines is in the file of the worked example, in the same order."""
    assert len(BLOCKS) == 3
    text = (ROOT / "examples" / "posts" / "eu_tasks.py").read_text(encoding="utf-8")
    rest = iter([line.strip() for line in text.splitlines()])
    shown = [line.strip() for line in BLOCKS[2].splitlines()]
    assert [line for line in shown if line and line not in rest] == []


def test_the_links_lead_somewhere() -> None:
    """Every file that the README names exists."""
    targets = re.findall(r"\]\(([^):]+)\)", README)
    assert len(targets) > 10
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_commands_are_verbs_of_the_makefile() -> None:
    """Each ``make`` verb in the README is there."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for verb in re.findall(r"make (\w+)", README):
        assert re.search(rf"^{verb}:", makefile, flags=re.MULTILINE)
