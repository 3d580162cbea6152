"""Findings that a comment in the source accepts: ``# antipode: ok(reason)``."""

from __future__ import annotations

import re
import tokenize
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ._records import shown

if TYPE_CHECKING:
    from pathlib import Path

    from ._model import Place, Report

_COMMENT = re.compile(r"#\s*antipode:\s*ok\b\s*(?:\((.*)\))?")


def accept(found: Report, root: Path) -> Report:
    """*found*, with the reasons of those findings and lints that comments accept.

    A comment counts on the line of the read, or of the lint, and alone on the line above. A
    finding is accepted when all of its lines are. A comment without a reason accepts nothing and
    makes the report fail.

    Args:
        found: the report.
        root: the folder that its relative files are in; files that are not there accept nothing.
    """
    comments = _Comments(root)
    findings = tuple(replace(o, accepted=comments.reason(o.read)) for o in found.findings)
    lints = tuple(replace(one, accepted=comments.reason(one.place)) for one in found.lints)
    return replace(
        found, findings=findings, lints=lints, unreasoned=tuple(sorted(comments.unreasoned))
    )


class _Comments:
    """The comments of source files that accept something, read once for each file."""

    def __init__(self, root: Path) -> None:
        self.unreasoned: set[str] = set()
        self._root = root
        self._files: dict[str, dict[int, str]] = {}

    def reason(self, place: Place) -> str:
        """Why *place* is accepted; empty where it is not."""
        reasons = [self._at(place.file, line) for line in place.lines]
        return "; ".join(dict.fromkeys(reasons)) if all(reasons) else ""

    def _at(self, file: str, line: int) -> str:
        comments = self._files.get(file)
        if comments is None:
            comments = self._files[file] = _comments(self._root / file)
        reason = comments.get(line)
        if reason == "":
            self.unreasoned.add(f"{file}:{line}")
        return reason or ""


def _comments(path: Path) -> dict[int, str]:
    """The reason for each line of code, empty where its comment gives none."""
    here: dict[int, str] = {}
    above: dict[int, str] = {}
    # What cannot be read, or is no Python, accepts nothing from where it stops being it.
    with (
        suppress(OSError, SyntaxError, ValueError, tokenize.TokenError),
        tokenize.open(path) as source,
    ):
        for token in tokenize.generate_tokens(source.readline):
            if token.type != tokenize.COMMENT or not (match := _COMMENT.match(token.string)):
                continue
            line, column = token.start
            alone = not token.line[:column].strip()
            (above if alone else here)[line + alone] = shown(match[1] or "").strip()
    return above | here
