"""The files of budgets: what each line may cost, compared with what was counted, and moved.

A file of `counts` holds the figures of one language and its minor version, a line for each call;
the file of the same name under `functions` says which functions they come from. All languages
write and compare with what is here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Counted:
    """What the library adds to one call.

    Attributes:
        line: names the client and the call.
        counts: by what is counted.
        drivers: the releases with which it was counted, by package.
        functions: how often each function was called more often (less often: negative) than
            without the library, where that is known.
    """

    line: str
    counts: Mapping[str, int]
    drivers: Mapping[str, str]
    functions: Mapping[str, int] = field(default_factory=dict)


class OutOfBudgetError(AssertionError):
    """A count is not what its file says. The message names the line, the counts and functions."""


class NotApplicableError(Exception):
    """The file has no figure for what is installed here. The message says why."""


class BudgetFile:
    """The budgets of one language and minor version, such as ``python-3.11``."""

    def __init__(self, name: str, folder: Path = HERE) -> None:
        """Read it where it exists."""
        self.name = name
        self._counts = folder / "counts" / f"{name}.json"
        self._functions = folder / "functions" / f"{name}.json"
        self._lines: dict[str, dict[str, Any]] = _read(self._counts)
        self._called: dict[str, dict[str, int]] = _read(self._functions)

    def compare(self, counted: Counted) -> None:
        """Compare a line with its budget.

        Raises:
            NotApplicableError: nothing was counted with what is installed here.
            OutOfBudgetError: a count is higher or lower, or there is no such line.
        """
        if not self._lines:
            raise NotApplicableError(f"nothing was counted with {self.name}: `make budgets` does")
        line = self._lines.get(counted.line)
        if line is None:
            raise OutOfBudgetError(f"{counted.line}: no budget yet: `make budgets` writes it")
        if line["drivers"] != dict(counted.drivers):
            raise NotApplicableError(
                f"{counted.line}: counted with {_pairs(line['drivers'])}, "
                f"and installed are {_pairs(counted.drivers)}"
            )
        if line["counts"] != dict(counted.counts):
            raise OutOfBudgetError(self._difference(counted, line["counts"]))

    def move(self, counted: Counted, reason: str = "") -> None:
        """Write a line as it was counted; a count that rises needs a reason.

        A reason is kept beside the number that it is of, and goes when that number changes. It is
        given here, or was written into the file beforehand.

        Raises:
            OutOfBudgetError: a count rises without a reason; the file stays as it is.
        """
        old = self._lines.get(counted.line, {"counts": {}, "reasons": {}})
        reasons = {}
        for what, count in counted.counts.items():
            key, before = f"{what} {count}", old["counts"].get(what)
            said = old.get("reasons", {}).get(key, "")
            if before is not None and count > before:
                said = reason or said
                if not said:
                    raise OutOfBudgetError(
                        f"{self._difference(counted, old['counts'])}\n"
                        f'It rises: say why, with `make budgets REASON="..."`, or in '
                        f'{self._counts.name} as "reasons": {{"{key}": "..."}}.'
                    )
            if said:
                reasons[key] = said
        line = {"counts": dict(counted.counts), "drivers": dict(counted.drivers)}
        self._lines[counted.line] = line | ({"reasons": reasons} if reasons else {})
        self._called[counted.line] = dict(sorted(counted.functions.items()))
        self._write()

    def _difference(self, counted: Counted, budget: Mapping[str, int]) -> str:
        """Which counts are others, and which functions were called more or less often for it."""
        told = [
            f"{what} {budget.get(what, 0)} -> {counted.counts.get(what, 0)}"
            for what in sorted({*budget, *counted.counts})
            if budget.get(what) != counted.counts.get(what)
        ]
        before, now = self._called.get(counted.line, {}), counted.functions
        called = [
            f"  {now.get(name, 0) - before.get(name, 0):+d} {name}"
            f" ({before.get(name, 0)} -> {now.get(name, 0)})"
            for name in sorted({*before, *now}, key=lambda name: (_theirs(name), name))
            if before.get(name, 0) != now.get(name, 0)
        ]
        return "\n".join([f"{counted.line}: {', '.join(told)}", *called])

    def _write(self) -> None:
        """Write both files: figures a row a line, functions a row a function."""
        rows = (
            f"{json.dumps(name)}: {json.dumps(self._lines[name])}" for name in sorted(self._lines)
        )
        self._counts.parent.mkdir(exist_ok=True)
        self._functions.parent.mkdir(exist_ok=True)
        self._counts.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
        called = {name: self._called[name] for name in sorted(self._called) if self._called[name]}
        self._functions.write_text(json.dumps(called, indent=1) + "\n", encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    """The content of a file; nothing where it does not exist."""
    if not path.exists():
        return {}
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _pairs(drivers: Mapping[str, str]) -> str:
    """Releases as people write them."""
    return ", ".join(f"{package} {release}" for package, release in sorted(drivers.items()))


def _theirs(function: str) -> bool:
    """Whether a function is another project's: ours are named first."""
    return not function.startswith("antipode")
