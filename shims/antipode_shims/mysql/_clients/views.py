"""Views that call functions which may write, on connections whose replies show no positions.

Neither the text of a statement that reads such a view nor its reply says that it wrote. So a name
that is read is asked about, once a connection: ``SHOW CREATE TABLE`` says what a view is made of,
and takes no snapshot. What nobody may see of a view may write. No I/O.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from antipode_shims._sql.texts import HEAD
from antipode_shims.mysql._functions import OWN, called
from antipode_shims.mysql._position.flavor import Ask, Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from antipode_shims.mysql._position.flavor import Asking, Flavor

#: Seconds after which a name is asked about again: others may have changed what it stands for.
FRESH_S: Final = 60.0
#: How many names are known of one connection, and how many of one statement are asked about.
_MOST: Final = 256
_MOST_ASKED: Final = 8
#: What a server answers for a name that stands for nothing: it is of a common table expression.
_NOTHING: Final = frozenset({1046, 1049, 1146})
_SYSTEM: Final = frozenset({b"information_schema", b"mysql", b"performance_schema", b"sys"})
_STRINGS: Final = re.compile(
    rb"""'(?:[^'\\]+|\\(?:.|\Z))*(?:'|\Z)|/\*(?!M?!).*?(?:\*/|\Z)|(?:\#|--(?=\s))[^\n]*""",
    re.DOTALL,
)
_PART: Final = rb"(?:`[^`]+`|[\w$\x80-\xff]+)"
_NAME: Final = rb"[\s(]*(" + _PART + rb"(?:\s*\.\s*" + _PART + rb")?)"
_FROM: Final = re.compile(rb"\b(?:from|join)\b" + _NAME, re.IGNORECASE)
_AND: Final = re.compile(rb"(?:\s+(?:as\s+)?" + _PART + rb")?[\s)]*," + _NAME, re.IGNORECASE)


def names_in(sql: bytes) -> frozenset[bytes]:
    """The tables and views that a statement's beginning reads, as it spells them."""
    text = _STRINGS.sub(b"''", sql[:HEAD])
    found = set()
    for match in _FROM.finditer(text):
        following: re.Match[bytes] | None = match
        while following is not None:
            found.add(b".".join(part.strip() for part in following[1].split(b".")))
            following = _AND.match(text, following.end())
    return frozenset(name for name in found if _schema(name) not in _SYSTEM)


def _schema(name: bytes) -> bytes:
    schema, dot, _ = name.rpartition(b".")
    return schema.strip(b"`").lower() if dot else b""


class Views:
    """What one connection knows of the names that its statements read."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._known: dict[bytes, bool] = {}
        self._since_s = 0.0

    def unknown(self, sql: bytes) -> list[bytes]:
        """The names of a statement that are to be asked about before it is sent."""
        now_s = time.monotonic()
        if now_s - self._since_s > FRESH_S or len(self._known) > _MOST:
            self._known, self._since_s = {}, now_s
        return [name for name in names_in(sql) if name not in self._known][:_MOST_ASKED]

    def forget(self) -> None:
        """Something was defined anew, or another schema is the default."""
        self._known = {}

    def may_write(self, sql: bytes) -> bool:
        """Whether a statement reads a view that may write."""
        return any(self._known.get(name, True) for name in names_in(sql))

    def asking(
        self, names: Collection[bytes], flavor: Flavor, harmless: frozenset[bytes]
    ) -> Asking[None]:
        """Ask what *names* stand for.

        Args:
            names: from :meth:`unknown`.
            flavor: of the server.
            harmless: functions of the application's that write nothing.
        """
        for name in names:
            self._known[name] = False  # A view is not made of itself.
            text = yield from _definition(name)
            if text is None:
                self._known[name] = True
                continue
            inner = names_in(text)
            yield from self.asking(
                [each for each in inner if each not in self._known], flavor, harmless
            )
            calls = called(text) - OWN[flavor] - harmless
            self._known[name] = bool(calls) or any(self._known[each] for each in inner)


def _definition(name: bytes) -> Asking[bytes | None]:
    """What a view is made of; nothing for a table, and None where nobody says."""
    try:
        quoted = ".".join(_quoted(name))
        rows = yield Ask(f"SHOW CREATE TABLE {quoted}")
    except UnicodeDecodeError:
        return None
    except Refused as error:
        return b"" if error.number in _NOTHING else None
    found = {str(column).lower(): value for column, value in rows[0].items()} if rows else {}
    text = found.get("create view", "")
    plain: bytes = text if isinstance(text, bytes) else str(text).encode()
    _, _, select = plain.partition(b" AS select ")
    return b"select " + select if select else plain


def _quoted(name: bytes) -> Iterator[str]:
    for part in name.split(b"."):
        yield "`" + part.strip(b"`").decode() + "`"
