"""What shims tell the current scope: writes, doubts, and reads that are about to be sent."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from . import _seam
from ._metrics import count
from ._scope import scope_in
from ._unscoped import unscoped

if TYPE_CHECKING:
    from types import FrameType

    from ._floor import Floor
    from ._seam import Unjudged
    from ._write_id import WriteId
    from .shim import Shim


def record_write(*writes: WriteId) -> None:
    """Enter committed writes into the current scope. For shims, after the store's reply.

    An entry without a mint hour gets the current one. Without a scope the write is counted and,
    once for each call site, logged.

    Raises:
        ConfigurationError: there is no scope, and ``on_unscoped="raise"``.
    """
    held = scope_in()
    if held is not None:
        held.append(*writes)
    elif writes:
        unscoped("write", writes[0].datastore)


def mark_incomplete(subject: str, reason: str) -> None:
    """Note in the current scope that something is missing. For shims, and for your own calls.

    Args:
        subject: the datastore or service.
        reason: a word of the specification, such as ``in_doubt``.
    """
    count("incomplete", subject)
    held = scope_in()
    if held is not None:
        held.mark_incomplete(subject, reason)


def floor(shim: Shim, *, reads: bool = True) -> Floor | None:
    """What the next read by a client of *shim* must see. For instrumented clients.

    Asked once for each covered read, just before it is sent: a dry run judges it here.

    Args:
        shim: whose client reads.
        reads: False where it is not known yet whether anything is read, for more of a read that
            was asked for already.
    """
    held = scope_in()
    if held is None:
        return None
    if reads and (observer := _seam.observer) is not None:
        unjudged = observer.concerned(held, shim)
        if unjudged is not None:
            observer.reads(shim, unjudged, sys._getframe(1))  # noqa: SLF001
    return held.floor(shim.datastore)


def reading(shim: Shim) -> tuple[Floor | None, Unjudged | None]:
    """What :func:`floor` says of a read, and what a dry run has to judge once it is sent.

    For instrumented clients that can tell when that is: they give it to :func:`read_sent` then.
    Most reads have nothing to be judged by.

    Args:
        shim: whose client reads.
    """
    held = scope_in()
    if held is None:
        return None, None
    observer = _seam.observer
    unjudged = None if observer is None else observer.concerned(held, shim)
    return held.floor(shim.datastore), unjudged


def read_sent(shim: Shim, unjudged: Unjudged, start: FrameType | None = None) -> None:
    """Let a dry run know of a read that was sent just now. For instrumented clients.

    In place of what :func:`floor` does: what a dry run takes is not added to the time that the
    server takes.

    Args:
        shim: whose client reads.
        unjudged: what :func:`reading` said.
        start: a frame between which and the client there is nothing but libraries; None for that
            of who calls. To find who reads from there is less to do.
    """
    if (observer := _seam.observer) is not None:
        observer.reads(shim, unjudged, start or sys._getframe(1))  # noqa: SLF001
