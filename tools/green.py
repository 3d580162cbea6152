"""Leave out a step of CI whose inputs are those of its last green run, and say so.

python -m tools.green unless NAME COMMAND...   run COMMAND, unless NAME was green over these inputs
python -m tools.green record NAME COMMAND...   run COMMAND; where it passes, note the inputs
python -m tools.green inputs NAME              the files that count

What was green stands in `tools/green.json`: `make nightly` writes it, maintainers commit it. Inputs
are what lies in the tree now, committed or not, by git's ids of their contents. A command that ends
with status 77 has found nothing to test here: that passes, and is not noted.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]
GREEN = ROOT / "tools" / "green.json"
#: The status of a command that found nothing to test.
NOTHING_TESTED = 77
#: The files that decide how a step ends, as pathspecs of git: rather too many than one too few.
#: What lies outside the tree (a newer image, a client's newer release) is nightly's to find.
_CPP = ("cpp", "tools/build_cpp.sh", "tools/fetch_debian.sh", "tools/apt_install.sh", "Makefile")
_FUZZED = (*_CPP, "tools/fuzz_cpp.sh", ":!cpp/tests", ":!cpp/agent", ":!cpp/benchmarks")
INPUTS: Mapping[str, tuple[str, ...]] = {
    # The shared libraries, with what tests them as they are installed.
    "cpp-shared": _CPP,
    # The library in the fuzzers, with the inputs that they begin with.
    "fuzz-texts": _FUZZED,
    "fuzz-shims": _FUZZED,
    # Builds the distributions, installs them on several Pythons, and runs unit tests and vectors
    # there in a copy of the tree: pages that these read, and the agents of Java and C++, count.
    "wheel": (
        *("pyproject.toml", "testing", "tools", "README.md", "LICENSE", "CHANGELOG.md", "Makefile"),
        *("antipode", "antipode_cli", "shims", "benchmarks", "examples", "docs", "java", "cpp"),
        *(":(glob)tests/*", "tests/agent", "tests/unit", "tests/conformance", "tests/checker"),
        *(":!tools/green.json", ":!tools/tidied.json"),
    ),
    # The contract suite of Redis, with its servers in containers.
    "containers": (
        *("containers", "docker-compose.yml", "tools/containers.sh", "tools/apt_install.sh"),
        *("pyproject.toml", "testing", "tools/make_venv.sh", "tools/constraints.txt"),
        *("antipode", "antipode_cli", ":(glob)shims/antipode_shims/*", "shims/antipode_shims/_*"),
        *("shims/antipode_shims/redis", ":(glob)tests/*", ":(glob)tests/contract/_*.py"),
        *("tests/contract/test_redis.py", "Makefile"),
    ),
}


def blobs(pathspecs: Sequence[str]) -> dict[str, str]:
    """The files that *pathspecs* name, with the mode and git's id of the content of each."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
    named = _output([*listing, *pathspecs]).split("\0")
    paths = sorted({name for name in named if name and (ROOT / name).is_file()})
    ids = _output(["git", "hash-object", "--stdin-paths"], "".join(f"{p}\n" for p in paths))
    runs = ("x" if os.access(ROOT / path, os.X_OK) else "-" for path in paths)
    return {
        path: f"{mode}{each}" for path, mode, each in zip(paths, runs, ids.split(), strict=True)
    }


def _output(command: list[str], given: str = "") -> str:
    return subprocess.run(
        command, cwd=ROOT, input=given, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def digest(files: Mapping[str, str]) -> str:
    """One text for the names and contents of *files*, as `blobs` gives them."""
    lines = "".join(f"{path} {blob}\n" for path, blob in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()[:32]


def recorded() -> dict[str, str]:
    """The digest of each step's last green run."""
    if not GREEN.exists():
        return {}
    known: dict[str, str] = json.loads(GREEN.read_text(encoding="utf-8"))
    return known


def record(digests: Mapping[str, str]) -> None:
    """Note *digests* as those of the last green runs; the steps that are not named keep theirs."""
    known = dict(sorted({**recorded(), **digests}.items()))
    GREEN.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")


def unless(name: str, command: Sequence[str]) -> int:
    """Run *command*, unless its inputs are those of the last green run."""
    if recorded().get(name) == digest(blobs(INPUTS[name])):
        print(f"left out: {name}: its inputs are those of the last green run (tools/green.json)")
        return 0
    print(f"{name}: an input has changed since the last green run (tools/green.json)", flush=True)
    return _passing(subprocess.run(command, cwd=ROOT, check=False).returncode)


def run_and_record(name: str, command: Sequence[str]) -> int:
    """Run *command*; where it passes, note the inputs that it began with."""
    began_with = digest(blobs(INPUTS[name]))
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if status == 0:
        record({name: began_with})
        print(f"{name}: noted as green in tools/green.json")
    return _passing(status)


def _passing(status: int) -> int:
    return 0 if status == NOTHING_TESTED else status


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says."""
    verb, name, *command = *arguments, "", ""
    command = [part for part in command if part]
    if name not in INPUTS or (verb != "inputs" and not command):
        print(__doc__, f"NAME is one of {', '.join(INPUTS)}.", sep="\n", file=sys.stderr)
        return 2
    if verb == "inputs":
        print(*blobs(INPUTS[name]), sep="\n")
        return 0
    return {"unless": unless, "record": run_and_record}[verb](name, command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
