"""What a person must know of a server whose replication leaves out some rows."""

from __future__ import annotations

from antipode.shim import log_once


def caveat(datastore: str, where: object, filters: tuple[str, ...]) -> str:
    """What is to be said of everything that such a server shows; logged once for each server.

    Args:
        datastore: its logical name.
        where: the server's address.
        filters: what it leaves out; nothing where it leaves out nothing.
    """
    if not filters:
        return ""
    said = f"replication leaves out rows there, whose positions come all the same: {filters[0]}"
    said = "; ".join((said, *filters[1:]))
    message = "the server where %r is read shows positions of writes that it never gets: %s"
    log_once("mysql_filters", datastore, where, message, datastore, said)
    return said
