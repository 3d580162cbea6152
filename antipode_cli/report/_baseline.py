"""The baseline: findings that are known, one id a line with what it is about."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ._records import RecordsError

if TYPE_CHECKING:
    from pathlib import Path

    from ._model import Report

_ID = re.compile(r"[ul][0-9a-f]{8}")
_HEAD = """\
# Findings of `antipode report` that are known. One id a line; what follows it is for people.
# Delete a line when its barrier is in place; write the file again with --write-baseline.
"""


def read_baseline(path: Path) -> frozenset[str]:
    """The ids in a baseline.

    Raises:
        RecordsError: the file is missing, unreadable or no baseline.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"cannot read the baseline {path}: {getattr(error, 'strerror', None) or error}"
        raise RecordsError(msg) from None
    ids: set[str] = set()
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if not _ID.fullmatch(words[0]):
            msg = f"{path}:{number} is no line of a baseline: {words[0]!r} is no id of a finding"
            raise RecordsError(msg)
        ids.add(words[0])
    return frozenset(ids)


def baseline_text(report: Report) -> str:
    """A baseline of what *report* found and no comment accepts, in a stable order."""
    lines = [
        f"{one.id} {one.datastore}: {one.read.name} reads what {one.write.name} wrote"
        for one in report.findings
        if not one.accepted
    ]
    lines += [f"{one.id} {one.lint}: {one.place.name}" for one in report.lints if not one.accepted]
    return _HEAD + "".join(f"{line}\n" for line in sorted(lines))
