"""What instrumented clients report about reads and transactions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from antipode._request.context import scope_in
from antipode._runtime import observers

from .floor import floor_in

if TYPE_CHECKING:
    from types import FrameType

    from antipode._lineage.write_id import WriteId
    from antipode._runtime.observers import Unjudged

    from .floor import Floor
    from .store import Store


def floor(shim: Store, *, reads: bool = True) -> Floor | None:
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
    if reads and (observer := observers.dry_run) is not None:
        unjudged = observer.concerned(held, shim)
        if unjudged is not None:
            observer.reads(shim, unjudged, sys._getframe(1))  # noqa: SLF001
    return floor_in(held, shim.datastore)


def reading(shim: Store) -> tuple[Floor | None, Unjudged | None]:
    """What :func:`floor` says of a read, and what a dry run has to judge once it is sent.

    For instrumented clients that can tell when that is: they give it to :func:`read_sent` then.
    Most reads have nothing to be judged by.

    Args:
        shim: whose client reads.
    """
    held = scope_in()
    if held is None:
        return None, None
    observer = observers.dry_run
    unjudged = None if observer is None else observer.concerned(held, shim)
    return floor_in(held, shim.datastore), unjudged


def read_sent(shim: Store, unjudged: Unjudged, start: FrameType | None = None) -> None:
    """Let a dry run know of a read that was sent just now. For instrumented clients.

    In place of what :func:`floor` does: what a dry run takes is not added to the time that the
    server takes.

    Args:
        shim: whose client reads.
        unjudged: what :func:`reading` said.
        start: a frame between which and the client there is nothing but libraries; None for that
            of who calls. To find who reads from there is less to do.
    """
    if (observer := observers.dry_run) is not None:
        observer.reads(shim, unjudged, start or sys._getframe(1))  # noqa: SLF001


def record_shown(shim: Store, *writes: WriteId) -> None:
    """Note, for a dry run, that a read by a client of *shim* showed *writes* by their own tokens.

    They enter the lineage with what was read, and no barrier is missing for them where it was
    read. Covering positions need no note: they are no finding.
    """
    if (observer := observers.dry_run) is not None:
        observer.showed(scope_in(), shim, writes)


def record_uncommitted(shim: Store, who: object, *, wrote: bool) -> None:
    """Note, for a dry run, that a transaction has written and is not committed, or is over.

    Its writes have no positions yet: what is published or called meanwhile cannot say that it
    depends on them.

    Args:
        shim: of the client.
        who: its connection or session; the same object in all calls.
        wrote: whether there is such a transaction now.
    """
    if (observer := observers.dry_run) is not None:
        # Each reply of a server may come here; most tell of no write.
        observer.uncommitted(scope_in() if wrote else None, shim, who, wrote=wrote)
