"""What is said of a client at an address that no rule names, and the entry that would name it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from .datastores import described, plain
from .metrics import count, log_once

if TYPE_CHECKING:
    from .datastores import Place, Rule

_WITHIN = {"redis": "database", "rabbitmq": "virtual host"}
_SCHEMES = {"rabbitmq": "amqp", "activemq": "stomp"}
#: Whose sockets are an option of a URL.
_SOCKETS = {"mysql": "mysql://localhost{}?unix_socket={}", "postgresql": "postgresql://{}?host={}"}


def url_of(store: str, place: Place, database: str | None) -> str:
    """The URL of the rule for one address of a *store*; without user and password."""
    host, port = place
    path = f"/{quote(plain(database), safe='*@')}" if database else ""
    if host.startswith("sentinel "):
        service, _, by = host.removeprefix("sentinel ").partition(" by ")
        return (
            f"redis+sentinel://{_at(by, port)}/{service}{path}"
            if by
            else (f"redis+sentinel://{service}{path}")
        )
    if not port and host.startswith("/"):
        return _SOCKETS[store].format(path, host) if store in _SOCKETS else f"unix://{host}"
    return f"{_SCHEMES.get(store, store)}://{_at(host, port)}{path}"


def _at(host: str, port: int) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"{name}:{port}" if port else name


def tell_of_undeclared(store: str, datastore: str, place: Place) -> None:
    """Warn, once an address, of a rule that names no replica where the server says it is one."""
    where, url = described(store, place, None), url_of(store, place, None)
    message = (
        "%s says that it is a replica, and its rule does not: reads of %r there wait for nothing. "
        "Write %s=%s?reads_from=replica in ANTIPODE_DATASTORES"
    )
    log_once("undeclared", datastore, where, message, where, datastore, datastore, url)


def tell_of_unnamed(
    store: str, place: Place, database: str | None, nearest: tuple[Rule, bool] | None
) -> None:
    """Count a client that no rule names, and warn of its address once.

    Args:
        store: of the client.
        place: its address, as it was given.
        database: its number, schema or virtual host; None where it is not known.
        nearest: a rule for the same server, and whether it is for this database, too; None where
            none is known.
    """
    count("unnamed_client", store)
    where, url = described(store, place, database), url_of(store, place, database)
    known, name = _known(store, database, nearest)
    message = (
        "no rule names %s: what its clients write is in no lineage, and their reads wait for "
        "nothing.%s Add %s=%s to ANTIPODE_DATASTORES (?reads_from=replica for a replica), or "
        "-=%s where it is no datastore of yours"
    )
    log_once("unnamed_client", store, where, message, where, known, name, url, url)


def _known(store: str, database: str | None, nearest: tuple[Rule, bool] | None) -> tuple[str, str]:
    """What is known of the server, and the name for the entry to add."""
    if nearest is None:
        return "", "NAME"
    rule, same = nearest
    if same:
        return f" This server is {rule.datastore!r} under another name of its host.", rule.datastore
    within = _WITHIN.get(store, "database")
    here = "none that is known" if database is None else repr(plain(database))
    there = f"{within} {rule.database!r} of this server"
    return f" {rule.datastore!r} is {there}, and this client's is {here}.", "NAME"
