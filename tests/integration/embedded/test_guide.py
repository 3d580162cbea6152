"""The guide to the embedded store does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "embedded.md"


def test_example_runs() -> None:
    """The example, run as it stands, prints what the guide says it prints."""
    text = GUIDE.read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    promised = re.search(r"It prints `(.*?)`\.", text)
    assert promised is not None
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.strip() == promised[1]


def test_every_command_is_in_the_guide() -> None:
    """The guide names every command of the replicator's process."""
    help_text = subprocess.run(
        [sys.executable, "-m", "antipode_shims.embedded", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    listed = re.search(r"Commands on\s+standard input: (.*?)\.", help_text, flags=re.DOTALL)
    assert listed is not None
    commands = [command.strip() for command in " ".join(listed[1].split()).split(",")]
    assert len(commands) == 9
    text = GUIDE.read_text(encoding="utf-8")
    assert [command for command in commands if f"`{command}`" not in text] == []
