"""What instrumented clients report about reads and transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode._request import open_writes
from antipode._request.context import is_stopped, scope_in
from antipode._request.recording import unscoped
from antipode._runtime import observers

from .automatic import applies, demand_of
from .demands import demanded_in
from .floor import Floor
from .plan import tell_of_unknown_stores
from .served import refused, serve

if TYPE_CHECKING:
    from antipode._lineage.unmet_errors import UnmetError
    from antipode._lineage.write_id import WriteId
    from antipode._request.scope import Scope

    from .automatic import AutomaticDemand
    from .served import StaleRead
    from .store import Store


@observers.own_time
def floor(
    shim: Store,
    *,
    reads: bool = True,
    changes: bool = False,
    who: object = None,
    stale: StaleRead | None = None,
) -> Floor | None:
    """What the next read by a client of *shim* must see. For instrumented clients.

    Asked once for each covered read, just before it is sent: a dry run judges it here. A read
    without a scope is counted and, once for each call site, logged; so is one that cannot see what
    its request wrote in a transaction of another connection.

    Args:
        shim: whose client reads.
        reads: False where it is not known yet whether anything is read, for more of a read that
            was asked for already.
        changes: whether it changes what it reads, as ``INSERT ... RETURNING`` does: a replica
            refuses it, so that a dry run has nothing to judge.
        who: the connection or session that reads, as :func:`record_uncommitted` has it.
        stale: is told when the read is answered, and counts it then. None: it is counted here,
            or where the floor lets it go, though its server may refuse it.

    Raises:
        UnmetError: automatic barriers raise, and it is known without a poll that something cannot
            be seen.
    """
    held = scope_in()
    if held is None:
        _tell_of_no_scope(shim, reads=reads)
        return None
    if reads:
        if (observer := observers.dry_run) is not None and not changes:
            observer.reads(held, shim)
        if open_writes.OPEN:  # Of any request: most have none.
            _tell_of_unseen(held, shim.datastore, id(who))
    called = demanded_in(held, shim.datastore)
    demands, flaw, raises = [] if called is None else [called], None, False
    if applies(shim) and (automatic := demand_of(held, shim, called)) is not None:
        raises = automatic.raises and automatic.flawed
        if automatic.wanted and not (demands and raises):
            demands.append(automatic)
        flaw = _flaw(automatic, shim) if reads else None
    if flaw is not None and raises and called is None:
        flaw.server = shim.server_name
        raise refused(flaw)
    if demands:
        return Floor(shim.datastore, demands, flaw=flaw, raises=raises, stale=stale, store=shim)
    if flaw is not None:
        flaw.server = shim.server_name
        (serve if stale is None else stale.serve)(shim.datastore, flaw)
    return None


def _tell_of_no_scope(shim: Store, *, reads: bool) -> None:
    if reads and not is_stopped():
        unscoped("read", shim.datastore, policy="report")


def _flaw(automatic: AutomaticDemand, shim: Store) -> UnmetError | None:
    """What no poll can show a read."""
    tell_of_unknown_stores(automatic.unknown)
    if automatic.unknown:
        from .aliases import search, tell_of_twin, unsearched  # Most processes never meet one.

        name = shim.datastore
        if strangers := unsearched(automatic.strangers, name):
            search(strangers, name, clock=shim.clock, tell=tell_of_twin)
    return automatic.flaw


def _tell_of_unseen(held: Scope, datastore: str, reader: int) -> None:
    """Report a read that a transaction of its request, not the *reader*'s own, is hidden from."""
    for number, transaction in open_writes.open_in(held):
        if transaction.datastore == datastore and number != reader:
            open_writes.tell_of_unseen("read", held, transaction)
            return


def record_shown(shim: Store, *writes: WriteId) -> None:
    """Note, for a dry run, that a read by a client of *shim* showed *writes* by their own tokens.

    They enter the lineage with what was read, and no barrier is missing for them where it was
    read. Covering positions need no note: they are no finding.
    """
    if (observer := observers.dry_run) is not None:
        observer.showed(scope_in(), shim, writes)


def record_uncommitted(shim: Store, who: object, *, wrote: bool) -> None:
    """Note that a transaction has written and is not committed, or is over.

    Its writes have no positions yet, and no other connection sees them: what is read, published or
    called meanwhile cannot depend on them.

    Args:
        shim: of the client.
        who: its connection or session, to which weak references are possible; the same object in
            all calls, and in those of :func:`floor` for what reads within the transaction.
        wrote: whether there is such a transaction now.
    """
    if wrote:
        open_writes.wrote(scope_in(), shim.datastore, who)
    else:  # Each reply of a server may come here; most report no write.
        open_writes.ended(id(who))
