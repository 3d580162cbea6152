"""The scope of a consumed message."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from antipode import scope
from antipode.shim import record_handled, record_unlabelled, shims_of
from antipode_shims._messages.consumed import taken
from antipode_shims._messages.headers import has_lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode.shim import Scope


@contextmanager
def message(frame: Any, *, datastore: str) -> Iterator[Scope]:
    """Handle one consumed message as a request of its own.

    The scope holds what the message depends on, and the message itself, which is visible here
    because it was received; a barrier in it waits for its causes. It never joins a scope that is
    open already. A message without a lineage starts an empty one; an unreadable lineage starts one
    that is incomplete.

    Args:
        frame: what stomp.py gives to ``on_message``, or a mapping of headers.
        datastore: the name that its publisher and every other service spell alike.

    Raises:
        TypeError: it is no message.
    """
    from antipode_shims.activemq._endpoint import headers_of

    headers = headers_of(frame)
    ledgers = [getattr(shim, "ledger", None) for shim in shims_of(datastore)]
    lineage, write = taken(headers, datastore, ledgers)
    with scope(lineage if write is None else lineage.append(write)) as held:
        if not has_lineage(headers):
            record_unlabelled(datastore)
        elif held.notes is not None:  # A dry run's.
            record_handled(datastore)
        yield held
