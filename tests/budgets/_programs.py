"""What programs in other languages count: a line of JSON for each call, and each by function."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: These need no server.
IN_PROCESS = {"core"}
#: The others' servers take longer to start than all of their budgets to count.
QUICK = {*IN_PROCESS, "redis"}
#: After so long a program hangs.
HANGS_S = 100


def marks(about: str) -> list[pytest.MarkDecorator]:
    """What a test needs of which a program counts *about*: a store, or what needs no server."""
    store = [] if about in IN_PROCESS else [pytest.mark.store(about)]
    return store if about in QUICK else [*store, pytest.mark.slow]


def cases(lines: Mapping[str, Sequence[str]]) -> list[Any]:
    """Each line with what it is about."""
    return [
        pytest.param(about, line, id=line, marks=marks(about))
        for about, of in lines.items()
        for line in of
    ]


def topology_of(request: pytest.FixtureRequest, about: str) -> Any:
    """The servers, or None where it needs none."""
    return None if about in IN_PROCESS else request.getfixturevalue(f"antipode_{about}")


def ran(words: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What a program wrote, by the names of its lines.

    Raises:
        AssertionError: it failed. The message is what it said.
    """
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == 0, done.stderr
    written = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["line"]: line for line in written}


def summed(functions: dict[str, int], kinds: Sequence[str]) -> dict[str, int]:
    """How often each kind came; names of *functions* end like ``, system calls: poll``."""
    sums: Counter[str] = Counter(dict.fromkeys(kinds, 0))
    for name, count in functions.items():
        sums[name.rpartition(", ")[2].partition(":")[0]] += count
    return dict(sums)
