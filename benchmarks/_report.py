"""What a benchmark of costs writes: its figures, and how they were measured."""

from __future__ import annotations

import json
import os
import shlex
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from ._machine import commit, in_use, machine
from ._processors import AS_IS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from typing_extensions import Self

    from ._processors import Processors

FORMAT = 4


@dataclass(frozen=True, slots=True)
class Start:
    """What is known when a benchmark begins.

    Attributes:
        at: when.
        at_s: the same by a clock that is never set.
        commit: of the project, with a plus where files differed; what is measured is loaded by now.
        in_use: how many processors others used.
        load: of the machine.
    """

    at: datetime
    at_s: float
    commit: str
    in_use: float
    load: tuple[float, float, float]

    @classmethod
    def now(cls) -> Self:
        """Begin."""
        return cls(
            datetime.now(timezone.utc), time.monotonic(), commit(), in_use(), os.getloadavg()
        )

    def conditions(
        self,
        program: str,
        options: Sequence[str],
        *,
        short: bool,
        versions: dict[str, str],
        processors: Processors | None = None,
    ) -> dict[str, Any]:
        """How the figures were measured, once they are.

        Args:
            program: as it is started.
            options: that the figures depend on.
            short: whether there were fewer rounds or calls than without options.
            versions: of what was measured, by name.
            processors: who ran where; None where it does not matter.
        """
        as_is = processors is AS_IS
        options = [*options, "--as-is"] if as_is else options
        held = {} if processors is None else {"processors": processors.said, "as_is": as_is}
        return {
            "format": FORMAT,
            "command": f"{program} {shlex.join(options)}",
            "short": short,
            "began": self.at.isoformat(timespec="seconds"),
            "took_s": round(time.monotonic() - self.at_s, 1),
            "commit": self.commit,
            "machine": {
                **machine(),
                "in_use": self.in_use,
                "load": self.load,
                "load_after": os.getloadavg(),
            },
            "versions": versions,
            **held,
        }


def write(path: Path, report: dict[str, Any], cases: Sequence[dict[str, Any]]) -> None:
    """Write a line for each case, so that two reports can be compared."""
    begun = json.dumps(report, indent=1)[:-2]
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{begun},\n "cases": [\n{lines}\n ]\n}}\n', encoding="utf-8")
