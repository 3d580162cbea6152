"""A history: what processes wrote, read, sent and received. docs/spec/history.md defines it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from antipode import AntipodeError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Reports progress: what is done, how many are done, and of how many; 0 where nobody knows.
Progress = Callable[[str, int, int], None]

WRITE, READ, SEND, RECEIVE = "write", "read", "send", "receive"


class HistoryError(AntipodeError):
    """A history is malformed, cut off, or says what cannot have happened."""

    code = "history"


class Operation(NamedTuple):
    """One operation of a process.

    Attributes:
        kind: ``write``, ``read``, ``send`` or ``receive``.
        process: the thread of execution that it belongs to; its operations follow each other.
        lineage: the request that it belongs to; None for none.
        datastore: of a write or a read, where.
        key: of a write or a read, what.
        version: what was written or read; None where a read found nothing.
        message: of a send or a receive, which message.
        site: the source line that called, ``file:line in function``; empty where nobody knows.
        where: the line of the history, ``file:line``; empty where it was never in a file.
    """

    kind: str
    process: str
    lineage: str | None = None
    datastore: str = ""
    key: str = ""
    version: str | None = None
    message: str = ""
    site: str = ""
    where: str = ""

    @property
    def subject(self) -> tuple[str, str]:
        """What a write or a read is about."""
        return self.datastore, self.key

    def __str__(self) -> str:
        """As explanations name it."""
        if self.kind in (SEND, RECEIVE):
            return f"{self.kind} {self.message}"
        version = "nothing" if self.version is None else self.version
        return f"{self.kind} {self.datastore}:{self.key} = {version}"


@dataclass(frozen=True, slots=True)
class History:
    """Operations; those of one process are in the order in which it did them.

    Attributes:
        operations: of all processes.
        initial: the version that a datastore and key had before; nothing for every other key.
        left_out: how many operations were recorded and are not here, since nobody knows what they
            read or received.

    Raises:
        HistoryError: an operation is of no known kind, or lacks what its kind needs.
    """

    operations: tuple[Operation, ...]
    initial: Mapping[tuple[str, str], str] = field(default_factory=dict)
    left_out: int = 0

    def __post_init__(self) -> None:
        """Refuse what is no operation."""
        for one in self.operations:
            if one.kind in (WRITE, READ):
                if not (one.datastore and one.key):
                    raise refused(one, f"a {one.kind} needs a datastore and a key")
                if one.kind == WRITE and one.version is None:
                    raise refused(one, "a write needs a version")
            elif one.kind not in (SEND, RECEIVE):
                raise refused(one, f"{one.kind!r} is no kind of operation")
            elif not one.message:
                raise refused(one, f"a {one.kind} needs a message")


def refused(one: Operation, why: str) -> HistoryError:
    """The error that says why *one* cannot be."""
    return HistoryError(f"{one.where or one}: {why}")
