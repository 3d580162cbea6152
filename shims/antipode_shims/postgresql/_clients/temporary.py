"""What a connection's transactions change of its own temporary tables. Pure.

Whether they changed anything else is the server's word, with the commit: what is known here only
decides whether it is asked.
"""

from __future__ import annotations

import re

from antipode_shims.postgresql._elsewhere import TARGETS
from antipode_shims.postgresql._statements import COMMITS_INSIDE, MANY

from .known import MOST

_MADE = re.compile(
    r"\s*CREATE\s+(?:LOCAL\s+|GLOBAL\s+)?TEMP(?:ORARY)?\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    r'(?:pg_temp\s*\.\s*)?"?([\w$]+)',
    re.IGNORECASE,
)


class Temporary:
    """One connection's temporary tables, as far as their names were seen.

    Attributes:
        alone: whether all that the transaction has changed so far has the name of one.
    """

    def __init__(self) -> None:
        """Of a connection that may have a transaction open already, which changed others."""
        self._names: frozenset[str] = frozenset()
        self._changed, self._others = False, True

    @property
    def alone(self) -> bool:
        """See the class."""
        return self._changed and not self._others

    def begin(self) -> None:
        """A transaction begins."""
        self._changed = self._others = False

    def note(self, sql: str, found: int) -> None:
        """A statement is sent that writes, by what is *found* of its text."""
        self._changed = True
        if found & (MANY | COMMITS_INSIDE):
            self._others = True
        elif made := _MADE.match(sql):
            names = self._names if len(self._names) < MOST else frozenset[str]()
            self._names = names | {made[1].lower()}
        else:
            targets = TARGETS[sql]
            self._others = self._others or not targets or not targets <= self._names
