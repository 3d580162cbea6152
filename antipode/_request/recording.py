"""What enters the current scope: writes, doubts, reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antipode._lineage.errors import ConfigurationError
from antipode._runtime import observers, switch
from antipode._runtime.call_site import call_site, is_migrating
from antipode._runtime.config import config
from antipode._runtime.metrics import count, log_once

from .context import scope_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from antipode._lineage.lineage import Lineage
    from antipode._lineage.write_id import WriteId
    from antipode._runtime.config import Policy


_OPEN = (
    "open one with antipode.scope(), or let the integration of its framework, worker or thread do "
    "so"
)
_ADVICE = {
    "barrier": (
        "it would wait for nothing. Run it within antipode.scope(), pass it a lineage, or start "
        "its thread with antipode.branch() or antipode.integrations.threads; "
        "configure(on_unscoped='report') lets it pass"
    )
}


_LINKS = {"read": "of", "promise": "on"}


@observers.own_time
def record_write(*writes: WriteId) -> None:
    """Enter committed writes into the current scope. For shims, after the store's reply.

    An entry without a written hour gets the current one. Without a scope the write is counted and,
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


def unscoped(what: str, datastore: str, *, policy: Policy | None = None) -> None:
    """Count, and once for each call site log, something that found no scope.

    What a migration reads and writes belongs to no request: it is left out.

    Raises:
        ConfigurationError: *policy*, default ``on_unscoped`` as configured, is ``raise``, and this
            is no dry run.
    """
    if switch.disabled or (what in ("read", "write") and is_migrating()):
        return
    count(f"unscoped_{what}", datastore)
    site = call_site()
    about = f" {_LINKS.get(what, 'to')} {datastore!r}" if datastore else ""
    advice = _ADVICE.get(what, _OPEN)
    if (observer := observers.dry_run) is not None:
        observer.unscoped(what, datastore)
    elif (policy or config().on_unscoped) == "raise":
        msg = f"{what}{about} at {site} outside a scope: {advice}"
        raise ConfigurationError(msg)
    message = "%s%s at %s outside a scope: %s"
    log_once(f"unscoped_{what}", datastore, site, message, what, about, site, advice)


def record_unlabelled(datastore: str) -> None:
    """Note, for a dry run, that the current scope is of a message without a lineage.

    Whoever published it is not instrumented, or did so outside of any scope: what the message
    depends on is not known, and no read of its handler can be judged.

    Args:
        datastore: from which it was consumed; empty where that is not known.
    """
    held = scope_in()
    if held is not None and (observer := observers.dry_run) is not None:
        observer.unlabelled(held, datastore, None)


def record_sent(datastore: str, destination: str = "") -> None:
    """Note, for a dry run, that the current request publishes a message into *datastore*.

    Args:
        datastore: the broker's.
        destination: its queue, topic or exchange; empty where that is not known.
    """
    held = scope_in()
    if held is not None and (observer := observers.dry_run) is not None:
        observer.sent(held, datastore, destination)


def record_handled(datastore: str, destination: str = "") -> None:
    """Note, for a dry run, that the current scope is of a message with a lineage.

    Args:
        datastore: from which it was consumed; empty where that is not known.
        destination: to where it was published, as for :func:`record_sent`.
    """
    held = scope_in()
    if held is not None and (observer := observers.dry_run) is not None:
        observer.handled(held, datastore, destination)


def lineage_not_read(datastore: str, what: str) -> None:
    """Note that a read shows nothing of the stored lineages of the values that it is made of.

    Of a count, say, or of an aggregate. What these values depend on elsewhere does not enter:
    counted as ``unread_lineage`` and logged once for each *what*, never silent. Nothing is marked:
    the read itself is covered by its position, as any other.
    """
    count("unread_lineage", datastore)
    log_once(
        "unread_lineage",
        datastore,
        what,
        "%s on %r does not show what its values depend on elsewhere",
        what,
        datastore,
    )


def lineage_not_stored(datastore: str, what: str) -> None:
    """Note that a write could not store its lineage with the value.

    Whoever reads that value does not learn what it depends on elsewhere: counted as
    ``unstored_lineage`` and logged once for each *what*, never silent. Nothing is marked: the
    write itself enters by its position, as any other.
    """
    count("unstored_lineage", datastore)
    log_once(
        "unstored_lineage",
        datastore,
        what,
        "%s on %r could not store its lineage with the value",
        what,
        datastore,
    )


@observers.own_time
def record_read(lineage: Lineage) -> None:
    """Merge what a read found into the current scope: who reads depends on what was read."""
    held = scope_in()
    if held is not None and not lineage.empty:
        held.merge(lineage)


def defer_read(sample: Callable[[], Lineage]) -> None:
    """Merge what *sample* returns into the current scope once its lineage is used or leaves.

    For a covering position that costs a round trip. *sample* returns the same whenever it is
    called again, and asks the server at most once: on the connection that read, and before that
    returns to its pool (the shim calls it there itself). It raises nothing: what cannot be sampled
    is a lineage that is incomplete. It is called from whatever thread uses the lineage.
    """
    held = scope_in()
    if held is not None:
        held.defer(sample)
