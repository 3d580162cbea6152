"""What a connection's transactions change of its own temporary tables. Pure.

Whether they changed anything else is the server's word, with the commit: what is known here only
decides whether it is asked.
"""

from __future__ import annotations

import re

from antipode_shims.postgresql._elsewhere import TARGETS
from antipode_shims.postgresql._statements import COMMITS_INSIDE, MANY

from .known import MOST

#: Within so many characters a statement says that it makes one.
HEAD = 64
_MADE = re.compile(
    r"\s*CREATE\s+(?:LOCAL\s+|GLOBAL\s+)?TEMP(?:ORARY)?\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    r'(?:pg_temp\s*\.\s*)?"?([\w$]+)',
    re.IGNORECASE,
)


class Temporary:
    """One connection's temporary tables, as far as their names were seen.

    Attributes:
        names: theirs, in small letters.
        alone: whether all that the transaction has changed so far has the name of one.
        others: whether it may have changed something else.
    """

    def __init__(self) -> None:
        """Of a connection that may have a transaction open already, which changed others."""
        self.names: frozenset[str] = frozenset()
        self.alone, self.others = False, True

    def note(self, sql: str, found: int) -> None:
        """A statement is sent that writes, by what is *found* of its text."""
        if found & (MANY | COMMITS_INSIDE):
            self.others = True
        elif made := _MADE.match(sql):
            names = self.names if len(self.names) < MOST else frozenset[str]()
            self.names = names | {made[1].lower()}
        else:
            targets = TARGETS[sql]
            self.others = self.others or not targets or not targets <= self.names
        self.alone = not self.others
