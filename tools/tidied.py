"""Which sources of C++ clang-tidy reads again: those that changed since it found nothing there.

python -m tools.tidied changed          print them, one a line
python -m tools.tidied record SOURCE... note that nothing was found in these

A source counts with all headers of ours that it includes, however deep, and with what decides the
checks. `make nightly` reads all sources and writes `tools/tidied.json`, which maintainers commit.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
CPP = ROOT / "cpp"
TIDIED = ROOT / "tools" / "tidied.json"
#: Where an include of ours is looked for, after the folder of the file that has it.
INCLUDED_FROM = ("include", "src", "agent")
#: What decides which checks there are, and how sources are compiled.
DECIDING = (".clang-tidy", "CMakeLists.txt", "CMakePresets.json")
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def sources() -> list[str]:
    """The sources that are read, relative to the folder of C++."""
    found = [*CPP.glob("src/*.cc"), *CPP.glob("src/*/*.cc"), *CPP.glob("agent/*.cc")]
    return sorted(path.relative_to(CPP).as_posix() for path in found)


def closure(source: Path) -> set[Path]:
    """*source* and the headers of ours that it includes, directly or not."""
    reached: set[Path] = set()
    pending = [source]
    while pending:
        path = pending.pop()
        if path not in reached:
            reached.add(path)
            pending.extend(_included(path))
    return reached


@cache
def _included(path: Path) -> tuple[Path, ...]:
    names = _INCLUDE.findall(path.read_text(encoding="utf-8"))
    places = (path.parent, *(CPP / folder for folder in INCLUDED_FROM))
    candidates = ((place / name).resolve() for name in names for place in places)
    return tuple(candidate for candidate in candidates if candidate.is_file())


def digest(source: str) -> str:
    """One text for all that decides what is found in *source*."""
    files = sorted({*closure((CPP / source).resolve()), *(CPP / name for name in DECIDING)})
    whole = hashlib.sha256()
    for path in files:
        whole.update(path.relative_to(CPP).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()[:16]


def recorded() -> dict[str, str]:
    """The digest of each source when nothing was found in it; empty before the first record."""
    if not TIDIED.exists():
        return {}
    known: dict[str, str] = json.loads(TIDIED.read_text(encoding="utf-8"))
    return known


def changed() -> list[str]:
    """The sources that differ from the record, and those that are not in it."""
    known = recorded()
    return [source for source in sources() if known.get(source) != digest(source)]


def record(clean: Sequence[str]) -> None:
    """Note that nothing was found in *clean*; the others keep what is noted of them."""
    known = {**recorded(), **{source: digest(source) for source in clean}}
    kept = {source: known[source] for source in sources() if source in known}
    TIDIED.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says."""
    match list(arguments):
        case ["changed"]:
            print(*changed(), sep="\n")
        case ["record", *clean] if clean:
            record(clean)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
