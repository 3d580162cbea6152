"""Write the synchronous files that repeat asynchronous ones: ``python -m tools.generate_sync``.

The asynchronous file is the one to edit. ``unasync`` leaves out ``async`` and ``await`` and
replaces names; ruff sorts the imports, leaves out those that only lines of ``# asyncio alone``
need, and formats what became shorter.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from unasync import Rule, unasync_files

ROOT = Path(__file__).resolve().parents[1]
#: Ends a line that has no synchronous twin.
ALONE = "  # asyncio alone\n"


@dataclass(frozen=True)
class Pair:
    """An asynchronous file and the synchronous one that is made of it."""

    folder: str
    source: str
    target: str
    #: Beside those that unasync knows: ``AsyncName`` becomes ``SyncName``.
    names: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Where the synchronous file is."""
        return ROOT / self.folder / self.target


PAIRS = (
    Pair(
        "shims/antipode_shims/mongodb/_clients",
        "async_hooks.py",
        "hooks.py",
        {"pause_async": "pause", "repeating_async": "repeating"},
    ),
)


def generated(pair: Pair) -> str:
    """The text of the synchronous file."""
    source = ROOT / pair.folder / pair.source
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / pair.target
        unasync_files([str(source)], [Rule(str(source), str(made), pair.names)])
        lines = made.read_text(encoding="utf-8").splitlines(keepends=True)
    text = "".join(each for each in lines if not each.endswith(ALONE))
    header = f"# Generated from {pair.source} by `make generate`; do not edit.\n"
    text = _ruff(pair, header + text, "check", "--quiet", "--select", "I001,F401", "--fix-only")
    return _ruff(pair, text, "format", "--quiet")


def _ruff(pair: Pair, text: str, *command: str) -> str:
    """What ruff makes of *text*, under the rules of the file that it becomes."""
    return subprocess.run(
        [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(pair.path), "-"],
        cwd=ROOT,
        input=text,
        capture_output=True,
        check=True,
        encoding="utf-8",
    ).stdout


def main() -> None:
    """Write every synchronous file anew."""
    for pair in PAIRS:
        pair.path.write_text(generated(pair), encoding="utf-8")
        print(pair.path.relative_to(ROOT))


if __name__ == "__main__":
    main()
