"""The guide's example of a check with pytest, step by step as it is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "dry-run.md").read_text(encoding="utf-8")
SECTION = GUIDE.split("### With pytest\n", 1)[1].split("\n## ", 1)[0]
#: Every Python block by its title, every console block in its order.
CODE = dict(re.findall(r'```python title="(.*?)"\n(.*?)```', SECTION, flags=re.DOTALL))
RUNS = re.findall(r"```console\n(.*?)```", SECTION, flags=re.DOTALL)


#: What depends on the machine, and what stands for it; how long a replica lags, and whether that
#: was seen before the process ended, among it.
OF_THE_MACHINE = (
    (re.compile(r"\bu[0-9a-f]{8}\b|\bID\b"), "ID"),
    (re.compile(r"in [\d.]+s$"), "in 0s"),
    (re.compile(r"about [\d.]+ ms a request at this lag|a wait that no evidence shows"), "A WAIT"),
    (re.compile(r"\b[01] known\)$"), "N known)"),
)


def commands(block: str) -> list[tuple[str, list[str]]]:
    """Each command of a console block, and what it prints."""
    _, *parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    joined = (part.replace("\\\n", " ").splitlines() for part in parts)
    return [(command, lines) for command, *lines in joined]


def comparable(lines: list[str]) -> list[str]:
    """*lines* without what depends on the machine, and with one id for all."""
    kept = [line.rstrip() for line in lines if not line.startswith("  cost ")]
    for pattern, same in OF_THE_MACHINE:
        kept = [pattern.sub(same, line) for line in kept]
    return kept


class Shell:
    """Runs commands as a reader would, in a folder of theirs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("ANTIPODE_", "PYTEST_"))}
        paths = [str(folder), *filter(None, sys.path)]
        self.environment = {**kept, "COLUMNS": "80", "PYTHONPATH": os.pathsep.join(paths)}

    def run(self, command: str) -> tuple[int, list[str]]:
        """The exit status, and the lines of standard output."""
        program, *words = command.split()
        python = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*(python if program == "pytest" else [program]), *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return done.returncode, done.stdout.splitlines()

    def check(self, block: str) -> int:
        """Run a console block, hold each output to what is printed, return the last status."""
        status = 0
        for command, promised in commands(block):
            status, printed = self.run(command)
            assert comparable(printed) == comparable(promised), command
        return status


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """The guide's files, in a folder without a configuration of pytest."""
    for name in ("feed.py", "test_feed.py"):
        (tmp_path / name).write_text(CODE[name], encoding="utf-8")
    return Shell(tmp_path)


def edit(shell: Shell, old: str, new: str) -> None:
    """Change the service."""
    service = shell.folder / "feed.py"
    text = service.read_text(encoding="utf-8")
    assert text.count(old) == 1
    service.write_text(text.replace(old, new), encoding="utf-8")


def test_red_run_the_fix_and_green_run(shell: Shell) -> None:
    """The planted barrier is missed with the guide's words; the one line makes the run green."""
    red, green, _, _ = RUNS
    assert shell.check(red) == 1
    page = (shell.folder / "build" / "antipode" / "report.html").read_text(encoding="utf-8")
    assert "on_message" in page
    fixed = CODE["feed.py: on_message"]
    added = [line for line in fixed.splitlines(keepends=True) if line not in CODE["feed.py"]]
    assert added == ['        antipode.barrier(timeout=5, only=["posts"])\n']
    edit(shell, fixed.replace(added[0], ""), fixed)
    assert shell.check(green) == 0


def test_legacy_baseline(shell: Shell) -> None:
    """The first run's baseline makes the unfixed service pass, and a new gap fails beside it."""
    red, _, legacy, _ = RUNS
    shell.check(red)
    assert shell.check(legacy) == 0
    edit(shell, "        text, _ =", "        shown(posts)\n        text, _ =")
    edit(
        shell,
        "def on_message",
        'def shown(posts):\n    return posts.read("post-1")[0]\n\n\ndef on_message',
    )
    (*_, (command, _)) = commands(legacy)
    status, printed = shell.run(command)
    assert status == 1
    assert len([line for line in printed if line.startswith("u")]) == 1
    assert any("in shown" in line for line in printed)


def test_accepted_read(shell: Shell) -> None:
    """The comment makes the check green, and its reason is printed."""
    accepted = CODE["feed.py: the read"]
    _, read = accepted.splitlines(keepends=True)
    edit(shell, read, accepted)
    assert shell.check(RUNS[3]) == 0
