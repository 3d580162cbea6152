"""``python -m tests.mutants --count 30 --seed 1``: which changes of the code no unit test notices.

Drawn among the core and what of the shims has no I/O. A survivor is no fault: many are as good as
the original. Each is reported, for whoever looks for a test that is missing. 1 only where nothing
was drawn, or the copy without a mutant fails.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .drawn import Mutant, draw
from .test_mutants import ROOT

#: What unit tests and vectors are to notice; `Tests:` of the patches are of these, too.
VECTORS = ("test_scripts.py", "test_stores.py", "test_codec.py", "test_headers.py")
#: What has tests of its own.
CHECKER = "antipode/_checker/"
#: How a module of a shim says that unit tests hold it.
PURE = ("Pure", "No I/O", "no I/O")
#: A mutant whose tests take longer hangs, and counts as noticed.
LONGEST_S = 1800


def texts() -> dict[str, str]:
    """The code that unit tests hold, by its path."""
    found = {}
    for path in sorted([*(ROOT / "antipode").rglob("*.py"), *(ROOT / "shims").rglob("*.py")]):
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        head = text.split('"""', 2)[1] if text.startswith('"""') else ""
        if name.startswith("antipode/") or any(word in head for word in PURE):
            found[name] = text
    return found


def tests_for(name: str) -> list[str]:
    """Unit tests, vectors and the checker's tests; first those that import or name the module."""
    module = Path(name).with_suffix("").as_posix().replace("/", ".").removeprefix("shims.")
    files = [
        *sorted((ROOT / "tests" / "unit").glob("test_*.py")),
        *(ROOT / "tests" / "conformance" / each for each in VECTORS),
    ]
    if name.startswith(CHECKER):
        files += sorted((ROOT / "tests" / "checker").glob("test_*.py"))
    own = [each for each in files if module in each.read_text(encoding="utf-8")]
    rest = [each for each in files if each not in own]
    return [each.relative_to(ROOT).as_posix() for each in (*own, *rest)]


def passes(checkout: Path, tests: list[str]) -> bool:
    """Whether all *tests* of a copy do."""
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n2"]
    roots = [checkout, checkout / "shims", checkout / "testing"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, roots))}
    limit = ["timeout", "--kill-after=10", str(LONGEST_S)]
    done = subprocess.run(
        [*limit, *command, *tests], cwd=checkout, env=environment, check=False, capture_output=True
    )
    return done.returncode == 0


def survives(checkout: Path, name: str, mutant: Mutant) -> bool:
    """Whether no test notices it."""
    path = checkout / name
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.text, encoding="utf-8")
    try:
        return passes(checkout, tests_for(name))
    finally:
        path.write_text(original, encoding="utf-8")


def main() -> int:
    """Draw, try and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", type=Path, default=ROOT / "build" / "nightly" / "mutants.md")
    given = parser.parse_args()
    chosen = draw(texts(), given.count, random.Random(given.seed))
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "checkout"  # Of what is committed: all that tests read is there.
        subprocess.run(["git", "clone", "-q", "--shared", ROOT, checkout], check=True)
        if not chosen or not passes(checkout, tests_for(chosen[0][0])):
            print("nothing was drawn, or the copy fails without a mutant", flush=True)
            return 1
        for name, mutant in chosen:
            began_s = time.monotonic()
            change = f"{name}:{mutant.line}: `{mutant.before}` -> `{mutant.after}`"
            survived = survives(checkout, name, mutant)
            if survived:
                lines.append(f"- {change}")
            spent_s = time.monotonic() - began_s
            print(f"{'survives' if survived else 'killed'} ({spent_s:.0f} s) {change}", flush=True)
    head = f"{len(chosen)} mutants, {len(lines)} survive, seed {given.seed}"
    given.report.parent.mkdir(parents=True, exist_ok=True)
    given.report.write_text("\n".join([f"# {head}", "", *lines, ""]), encoding="utf-8")
    print("\n".join([head, *lines]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
