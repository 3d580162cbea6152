"""How large the house is: lines, clones, and the walk of a Redis write, each beside its bar.

python -m tools.sizes       print them; exits 0 only within all bars

A clone is a pair of files, or one file, with six lines or more that are the same: blanks, comments,
imports and lone punctuation are passed over, and strings and numbers count as alike. The walk is
the packages that a write of an instrumented redis-py client enters; it needs a `redis-server`.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import redis

import antipode
from antipode_shims.redis import instrument_client
from antipode_testing import RedisTopology

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
SHIMS = ROOT / "shims" / "antipode_shims"
JAVA = ROOT / "java"
#: So many lines make a clone; what stands in more places than that is an idiom.
LEAST = 6
MOST_PLACES = 8
#: What a line of no weight consists of.
LIGHT = re.compile(r"[\W_]*|(#|//|/?\*).*|(from|import|package)\b.*|@Override")
VALUE = re.compile(r"[rbf]?(\"[^\"]*\"|'[^']*')|\b\d[\w.]*")


@dataclass(frozen=True)
class Size:
    """One figure beside its bar."""

    what: str
    found: int
    bar: int

    def __str__(self) -> str:
        """A line for a person."""
        told = "within" if self.found <= self.bar else f"{self.found - self.bar:,} above"
        return f"{self.what:<36}{self.found:>8,}{self.bar:>8,}  {told}"


def shims() -> list[Path]:
    """The sources of Python's shims."""
    return sorted(SHIMS.rglob("*.py"))


def java() -> list[Path]:
    """The sources of Java's modules, without their tests."""
    return sorted(JAVA.glob("*/src/main/**/*.java"))


def lines(files: Iterable[Path]) -> int:
    """How many lines *files* have together."""
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def weighty(text: str) -> list[str]:
    """The lines of *text* that count, without what tells two clones apart."""
    stripped = (line.strip() for line in text.splitlines())
    return [VALUE.sub("0", line) for line in stripped if not LIGHT.fullmatch(line)]


def clones(texts: dict[str, str]) -> list[tuple[str, str]]:
    """The pairs of names whose texts share six lines or more, in one run."""
    places: defaultdict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, text in texts.items():
        found = weighty(text)
        for at in range(len(found) - LEAST + 1):
            places[tuple(found[at : at + LEAST])].append((name, at))
    return sorted(
        {
            (one, other)
            for seen in places.values()
            if len(seen) <= MOST_PLACES
            for (one, at), (other, there) in combinations(seen, 2)
            if one != other or there - at >= LEAST
        }
    )


def clones_in(files: Iterable[Path], folder: Path) -> list[tuple[str, str]]:
    """The pairs of *files* that share six lines or more."""
    texts = {
        file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8") for file in files
    }
    return clones(texts)


def walk(call: Callable[[], object]) -> list[str]:
    """The packages of ours that *call* enters, one after another."""
    entered: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        package = str(frame.f_globals.get("__package__") or "")
        if event == "call" and package.startswith("antipode") and entered[-1:] != [package]:
            entered.append(package)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return entered


def returns(entered: list[str]) -> int:
    """How often a walk comes back to a package that it has left."""
    return len(entered) - len(set(entered))


def write_walk() -> list[str]:
    """The walk of a write to Redis, in a request, once all is warm."""
    with RedisTopology() as topology, redis.Redis(*topology.primary) as client:
        instrument_client(client, datastore="sizes")
        for _ in range(3):
            with antipode.scope():
                found = walk(lambda: client.set("sizes", "x"))
    return found


def sizes() -> list[Size]:
    """All figures, each with its bar: 5,000 and 6,900 lines fewer, and half of the clones."""
    python, classes = shims(), java()
    return [
        Size("lines of shims/antipode_shims", lines(python), 39_541),
        Size("lines of Java's src/main", lines(classes), 58_101),
        Size("clones in shims/antipode_shims", len(clones_in(python, SHIMS)), 49),
        Size("clones in Java's src/main", len(clones_in(classes, JAVA)), 32),
        Size("returns of a Redis write's walk", returns(write_walk()), 0),
    ]


def main() -> int:
    """Print the figures; 0 only within their bars."""
    found = sizes()
    print(f"{'':<36}{'now':>8}{'bar':>8}")
    print(*found, sep="\n")
    return int(any(each.found > each.bar for each in found))


if __name__ == "__main__":
    sys.exit(main())
