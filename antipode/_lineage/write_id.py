"""Write identifiers, promises and marks of incompleteness: what a lineage is made of."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .errors import LineageDecodeError
from .grammar import (
    MAX_EXPIRY,
    MAX_HOUR,
    MAX_VERSION,
    foreign_of,
    header_of,
    items_of,
    promise_fields,
    promise_item,
    refused_item,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_PROMISE_ID = re.compile(r"[0-9a-f]{32}")


def check_text(what: str, text: object) -> None:
    """Raise unless *text* is a string that UTF-8 can carry.

    Raises:
        TypeError: it is no string.
        ValueError: it holds a lone surrogate.
    """
    if not isinstance(text, str):
        msg = f"{what} must be a str, not {type(text).__name__}"
        raise TypeError(msg)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            msg = f"{what} must be encodable as UTF-8: {text!r}"
            raise ValueError(msg) from None


def check_range(what: str, number: object, most: int) -> None:
    """Raise unless *number* is an integer from 0 to *most*.

    Raises:
        TypeError: it is no int.
        ValueError: it is out of range.
    """
    if not isinstance(number, int) or isinstance(number, bool):
        msg = f"{what} must be an int, not {type(number).__name__}"
        raise TypeError(msg)
    if not 0 <= number <= most:
        msg = f"{what} must be from 0 to {most}: {number}"
        raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class WriteId:
    """One write, as the store that took it names it (paper section 6.1).

    Stores with a replication log put the name of the *log* in ``key`` and the position in
    ``version``: one entry then stands for all writes up to it.

    Attributes:
        datastore: the logical name that every service spells alike; not empty.
        key: the key that was written, or the log's name.
        version: issued by the store. On the same datastore and key a larger integer (0 to
            2**64-1) supersedes a smaller; opaque strings accumulate.
        written_hour: Unix hour in which the write was acknowledged; 0 when it is not known.
        covering: the position was sampled after a read rather than issued for a write: waited
            on, never counted as a violation.

    Raises:
        TypeError: a field has the wrong type.
        ValueError: a field is out of its range.
    """

    datastore: str
    key: str
    version: int | str
    written_hour: int = 0
    covering: bool = False
    #: Its item on the wire without the age, once the codec has made it.
    _item: str = field(default="", init=False, repr=False, compare=False)
    #: Whether it came in a text, rather than being recorded in this process: it goes first where
    #: a text has to be shorter.
    _outside: bool = field(default=False, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse what could not be put on the wire."""
        datastore, key, version, hour = self.datastore, self.key, self.version, self.written_hour
        if not (  # The common case, in one test.
            type(version) is int
            and 0 <= version <= MAX_VERSION
            and type(datastore) is type(key) is str
            and datastore.isascii()
            and key.isascii()
            and datastore
            and type(hour) is int
            and 0 <= hour <= MAX_HOUR
        ):
            self._check()

    def _check(self) -> None:
        """Say what is wrong, if something is."""
        check_text("datastore", self.datastore)
        check_text("key", self.key)
        if not self.datastore:
            msg = "datastore must not be empty"
            raise ValueError(msg)
        if isinstance(self.version, str):
            check_text("version", self.version)
        else:
            check_range("version", self.version, MAX_VERSION)
        check_range("written_hour", self.written_hour, MAX_HOUR)

    def __str__(self) -> str:
        """``datastore:key@version``, with ``~`` before a covering position's version."""
        return f"{self.datastore}:{self.key}@{'~' if self.covering else ''}{self.version}"


class PromiseName(NamedTuple):
    """What makes a promise the same one, whenever it expires."""

    datastore: str
    id: str


@dataclass(frozen=True, slots=True)
class Promise:
    """A branch of the request that will still write (specification, lineage format).

    Attributes:
        datastore: where the fulfilment is recorded, atomically with the branch's data.
        id: 32 lower-case hexadecimal digits, random.
        expires_s: Unix second after which the promise counts as abandoned.

    Raises:
        TypeError: a field has the wrong type.
        ValueError: a field is out of its range.
    """

    datastore: str
    id: str
    expires_s: int

    def __post_init__(self) -> None:
        """Refuse what could not be put on the wire."""
        check_text("datastore", self.datastore)
        check_text("id", self.id)
        if not self.datastore:
            msg = "datastore must not be empty"
            raise ValueError(msg)
        if not _PROMISE_ID.fullmatch(self.id):
            msg = f"id must be 32 lower-case hexadecimal digits: {self.id!r}"
            raise ValueError(msg)
        check_range("expires_s", self.expires_s, MAX_EXPIRY)

    @property
    def name(self) -> PromiseName:
        """By which it is the same promise in another lineage."""
        return PromiseName(self.datastore, self.id)

    @property
    def token(self) -> str:
        """The text by which the branch that will write knows its promise; see :meth:`parse`.

        Of letters, digits, ``.``, ``_``, ``~`` and ``-`` alone: it is the canonical text of the
        lineage that holds this promise and nothing else.
        """
        return f"{header_of(0)}~{promise_item(self.datastore, self.id, self.expires_s)}"

    @classmethod
    def parse(cls, token: str) -> Promise:
        """The promise that *token* stands for.

        Raises:
            LineageDecodeError: it is no :attr:`token`.
        """
        items, newest_h = items_of(token)
        if len(items) != 1 or items[0][:1] != "p":
            msg = "the text of a lineage, but not of one promise alone"
            raise LineageDecodeError("lineage_item", msg)
        try:
            return cls(*promise_fields(items[0]))
        except ValueError as error:
            raise refused_item(items[0], error, len(header_of(newest_h)) + 1) from None

    def __str__(self) -> str:
        """``datastore:promise id``."""
        return f"{self.datastore}:promise {self.id}"


#: What a barrier can wait for.
Dependency: TypeAlias = WriteId | Promise


class Incomplete(NamedTuple):
    """Something that is known to be missing from a lineage.

    Attributes:
        subject: the datastore or service whose writes are missing; empty when not known.
        reason: a stable word of the specification: ``in_doubt``, ``size``, ``promise``,
            ``unreadable``, ``stripped``, ``unsampled``, ``egress``, ``snapshot``, ``unknown_item``,
            ``out_of_order``; shims may add others.
    """

    subject: str
    reason: str

    def __str__(self) -> str:
        """``subject (reason)``."""
        return f"{self.subject or 'unknown source'} ({self.reason})"


class Unjudged(Incomplete):
    """The mark of a barrier that met items which this release does not know.

    Equal to (empty subject, ``unknown_item``); for a person it says of which version they are.
    """

    #: What the lineage holds, and what to do.
    words: str

    @classmethod
    def of(cls, items: Iterable[str]) -> Unjudged:
        """The mark for *items* that may be dependencies."""
        held = sorted({_described(item) for item in items})
        mark = cls("", "unknown_item")
        mark.words = (
            f"it holds {' and '.join(held)}, and this release reads format version 1 alone: "
            "upgrade antipode in this service to the release of whoever sent it"
        )
        return mark

    def __str__(self) -> str:
        """The mark, and what to upgrade."""
        return f"{super().__str__()}: {self.words}"


def _described(item: str) -> str:
    foreign = foreign_of(item)
    if foreign is not None:
        return f"a lineage of format version {foreign[0]}"
    return f"items of kind {item[0]!r}"
