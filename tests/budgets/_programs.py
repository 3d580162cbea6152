"""What programs in other languages count: a line of JSON for each call, and each by function."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

#: After so long a program hangs.
HANGS_S = 100


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
