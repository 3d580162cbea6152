"""Views that call functions which may write, where replies with rows show no positions.

Neither the text of a statement that reads such a view nor its reply says that it wrote. So a name
that is read is asked about, once a connection: ``SHOW CREATE TABLE`` says what a view is made of,
and takes no snapshot. What nobody may see of a view may write. Where the reply to a commit has
its position, only a statement that commits itself is concerned: then the server's views are asked
for, once for all connections, and no other name is asked about. No I/O.
"""

from __future__ import annotations

import contextlib
import re
import time
from typing import TYPE_CHECKING, Final

from antipode_shims._sql.texts import LONGEST
from antipode_shims.mysql._functions import OWN, called
from antipode_shims.mysql._position.flavor import Ask, Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from antipode_shims.mysql._position.flavor import Asking, Flavor

#: Seconds after which a name is asked about again: others may have changed what it stands for.
FRESH_S: Final = 60.0
#: How many names are known of one connection, and how many of one statement are asked about.
_MOST: Final = 256
_MOST_ASKED: Final = 8
#: What a server answers for a name that stands for nothing: it is of a common table expression.
_NOTHING: Final = frozenset({1046, 1049, 1146})
_SYSTEM: Final = frozenset({b"information_schema", b"mysql", b"performance_schema", b"sys"})
#: The views that a user may read.
_LISTED: Final = (
    "SELECT TABLE_NAME AS name FROM information_schema.VIEWS WHERE TABLE_SCHEMA NOT IN"
    " ('information_schema', 'mysql', 'performance_schema', 'sys') LIMIT 1024"
)
_MOST_LISTED: Final = 1023
_QUOTED: Final = re.compile(
    rb"""`[^`]*(?:`|\Z)|'(?:[^'\\]+|\\(?:.|\Z))*(?:'|\Z)|"(?:[^"\\]+|\\(?:.|\Z))*(?:"|\Z)"""
    rb"""|/\*(?!M?!).*?(?:\*/|\Z)|(?:\#|--(?=\s))[^\n]*""",
    re.DOTALL,
)
_PART: Final = rb'(?:`[^`]+`|"[^"]+"|[\w$\x80-\xff]+)'
_NAME: Final = rb"[\s(]*(" + _PART + rb"(?:\s*\.\s*" + _PART + rb")?)"
_FROM: Final = re.compile(rb"\b(?:from|(?:straight_)?join|table)\b" + _NAME, re.IGNORECASE)
_AND: Final = re.compile(rb"(?:\s+(?:as\s+)?" + _PART + rb")?[\s)]*," + _NAME, re.IGNORECASE)


def names_in(sql: bytes) -> frozenset[bytes]:
    """The tables and views that a statement reads, as it spells them."""
    text = _QUOTED.sub(_shown, sql[:LONGEST])
    found = set()
    for match in _FROM.finditer(text):
        following: re.Match[bytes] | None = match
        while following is not None:
            found.add(b".".join(part.strip() for part in following[1].split(b".")))
            following = _AND.match(text, following.end())
    return frozenset(name for name in found if _schema(name) not in _SYSTEM)


def _shown(quoted: re.Match[bytes]) -> bytes:
    """A name as it is quoted, and nothing of strings and comments."""
    text = quoted[0]
    return text if text[:1] in b'`"' else b"''" if text[:1] == b"'" else b" "


def _schema(name: bytes) -> bytes:
    schema, dot, _ = name.rpartition(b".")
    return schema.strip(b'`"').lower() if dot else b""


class Listing:
    """The names of one server's views, for all connections that reach it alike.

    Attributes:
        calm_until_s: until when nobody has to ask, since there are none; on the monotonic clock.
    """

    __slots__ = ("_names", "_until_s", "calm_until_s")

    def __init__(self) -> None:
        """Not asked for yet."""
        self._names: frozenset[bytes] | None = None
        self.forget()

    @property
    def stale(self) -> bool:
        """Whether it is to be asked for."""
        return time.monotonic() >= self._until_s

    def has(self, name: bytes) -> bool:
        """Whether *name* may be a view's, in whatever schema."""
        return self._names is None or _table(name) in self._names

    def forget(self) -> None:
        """A view may have been made."""
        self._until_s = self.calm_until_s = 0.0

    def asking(self) -> Asking[None]:
        """Ask for it."""
        names: frozenset[bytes] | None = None
        with contextlib.suppress(Refused):
            rows = yield Ask(_LISTED)
            if len(rows) <= _MOST_LISTED:
                names = frozenset(_table(_bytes(row["name"])) for row in rows)
        self._names, self._until_s = names, time.monotonic() + FRESH_S
        self.calm_until_s = 0.0 if names is None or names else self._until_s


class _Anything(Listing):
    """Of a server where any name may be a view's, because nobody asks."""

    __slots__ = ()

    @property
    def stale(self) -> bool:
        return False


ANYTHING: Final = _Anything()


class Views:
    """What one connection knows of the names that its statements read.

    Attributes:
        listing: of its server's views; :data:`ANYTHING` where no reply shows a position.
    """

    __slots__ = ("_known", "_since_s", "listing")

    def __init__(self, listing: Listing = ANYTHING) -> None:
        """Nothing yet."""
        self.listing = listing
        self._known: dict[bytes, bool] = {}
        self._since_s = 0.0

    def unknown(self, sql: bytes) -> list[bytes]:
        """The names of a statement that are to be asked about before it is sent."""
        now_s = time.monotonic()
        if now_s - self._since_s > FRESH_S or len(self._known) > _MOST:
            self._known, self._since_s = {}, now_s
        names = names_in(sql)
        return list(names) if self.listing.stale else self._unknown(names)

    def _unknown(self, names: Iterable[bytes]) -> list[bytes]:
        return [name for name in names if name not in self._known and self.listing.has(name)][
            :_MOST_ASKED
        ]

    def forget(self, *, made: bool = True) -> None:
        """Something was defined anew, or another schema is the default.

        Args:
            made: whether a view may have been made.
        """
        self._known = {}
        if made:
            self.listing.forget()

    def may_write(self, sql: bytes) -> bool:
        """Whether a statement reads a view that may write."""
        has, known = self.listing.has, self._known
        return any(known.get(name, True) for name in names_in(sql) if has(name))

    def asking(
        self, names: Collection[bytes], flavor: Flavor, harmless: frozenset[bytes]
    ) -> Asking[None]:
        """Ask what *names* stand for.

        Args:
            names: from :meth:`unknown`.
            flavor: of the server.
            harmless: functions of the application's that write nothing.
        """
        if self.listing.stale:
            yield from self.listing.asking()
            names = self._unknown(names)
        yield from self._asking(names, flavor, harmless)

    def _asking(
        self, names: Collection[bytes], flavor: Flavor, harmless: frozenset[bytes]
    ) -> Asking[None]:
        for name in names:
            self._known[name] = False  # A view is not made of itself.
            text = yield from _definition(name)
            if text is None:
                self._known[name] = True
                continue
            inner = names_in(text)
            yield from self._asking(
                [each for each in inner if each not in self._known], flavor, harmless
            )
            calls = called(text) - OWN[flavor] - harmless
            inside = any(self._known[each] for each in inner)
            self._known[name] = bool(calls) or inside or len(text) > LONGEST


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
    plain = _bytes(found.get("create view", ""))
    _, _, select = plain.partition(b" AS select ")
    return b"select " + select if select else plain


def _bytes(text: object) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode()


def _table(name: bytes) -> bytes:
    """A name without its schema and quotes, in small letters."""
    return name.rpartition(b".")[2].strip(b'`"').lower()


def _quoted(name: bytes) -> Iterator[str]:
    for part in name.split(b"."):
        yield "`" + part.strip(b'`"').decode() + "`"
