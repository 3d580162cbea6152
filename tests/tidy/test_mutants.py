"""The mutants of decisions are patches of the code as it is; what each breaks is tried nightly."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_each_mutant_applies() -> None:
    """No patch has lost the code that it changes."""
    patches = sorted((ROOT / "tests" / "mutants").rglob("*.patch"))
    assert patches
    lost = [
        path.name
        for path in patches
        if subprocess.run(
            ["git", "apply", "--check", str(path)], cwd=ROOT, capture_output=True, check=False
        ).returncode
    ]
    assert not lost
