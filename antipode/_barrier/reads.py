"""What instrumented clients report about reads and transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode._request.context import scope_in
from antipode._runtime import observers

from .automatic import applies, automatic_floor
from .floor import floor_in

if TYPE_CHECKING:
    from antipode._lineage.write_id import WriteId

    from .floor import Floor
    from .store import Store


def floor(shim: Store, *, reads: bool = True) -> Floor | None:
    """What the next read by a client of *shim* must see. For instrumented clients.

    Asked once for each covered read, just before it is sent: a dry run judges it here.

    Args:
        shim: whose client reads.
        reads: False where it is not known yet whether anything is read, for more of a read that
            was asked for already.

    Raises:
        UnmetError: automatic barriers raise, and it is known without a look that something cannot
            be seen.
    """
    held = scope_in()
    if held is None:
        return None
    if reads and (observer := observers.dry_run) is not None:
        observer.reads(held, shim)
    explicit = floor_in(held, shim.datastore)
    return automatic_floor(held, shim, explicit, reads=reads) if applies(shim) else explicit


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
