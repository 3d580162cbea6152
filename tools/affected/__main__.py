"""Run the quick tests that a change reaches, in all three languages.

The change is what differs from where this branch left the main one, committed or not. Which tests
it reaches is read from what they import, start and read; where that cannot be known, all run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from tools.affected._plan import ALWAYS, Plan, plan
from tools.import_graph import ROOT

#: How pytest ends where no test of the tier is in the files.
NO_TESTS = 5
MAIN = ("origin/main", "main")


def git(*words: str) -> str | None:
    """What git says; None where it refuses."""
    command = ["git", *words]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return said.stdout if said.returncode == 0 else None


def changed(base: str) -> set[str]:
    """The files that differ from where this branch left *base*, with both names of a moved one."""
    since = (git("merge-base", base, "HEAD") or "").strip()
    if not since:
        raise SystemExit(
            f"error: git knows no {base!r}, or nothing that it shares with this branch"
        )
    listed = git("diff", "--name-only", "--no-renames", "-z", since) or ""
    new = git("ls-files", "-z", "--others", "--exclude-standard") or ""
    return {name for name in (listed + new).split("\0") if name}


def commands(found: Plan, pytest_arguments: list[str]) -> list[list[str]]:
    """What runs, in order: agents are built before the tests that start them."""
    builds = [[f"tools/build_{language}.sh"] for language in sorted(found.languages)]
    files = [] if found.everything else [*ALWAYS, *_outside_always(found)]
    return [*builds, ["tools/run_tests.sh", sys.executable, "test", *pytest_arguments, *files]]


def _outside_always(found: Plan) -> list[str]:
    return [file for file in sorted(found.files) if not file.startswith(ALWAYS)]


def tell(found: Plan, since: str, count: int) -> None:
    """Say what runs and why."""
    print(f"{count} files differ from {since}")
    for language, reason in sorted(found.languages.items()):
        print(f"{language}: {reason}")
    if found.everything:
        print(f"all quick tests: {found.everything}")
        return
    print(f"{', '.join(ALWAYS)}: they read the whole tree")
    for file in _outside_always(found):
        print(f"{file}: {found.files[file]}")


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tools.affected", description=__doc__)
    parser.add_argument("--base", help="the branch or commit to compare with")
    parser.add_argument("--list", action="store_true", help="say what would run, and why")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest, after --")
    arguments = parser.parse_args()
    base = arguments.base or next((name for name in MAIN if git("rev-parse", "-q", name)), "HEAD")
    files = changed(base)
    found = plan(files)
    tell(found, base, len(files))
    if arguments.list or not files:
        return 0
    for command in commands(found, arguments.pytest):
        sys.stdout.flush()
        status = subprocess.run(command, cwd=ROOT, env=os.environ, check=False).returncode
        if status not in {0, NO_TESTS}:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
