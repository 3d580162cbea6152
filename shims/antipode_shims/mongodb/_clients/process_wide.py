"""``instrument``: every client of PyMongo in this process, by its address."""

from __future__ import annotations

import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

from antipode.shim import ProcessWide, place_of, places_in, switchable
from antipode_shims.mongodb._instrument import implied, instrument_client, uninstrument_client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode.shim import Datastores, Rule

#: Clients that were instrumented, and what is registered for each.
_clients: list[tuple[weakref.ref[Any], Any]] = []
_lock = threading.Lock()


@switchable
def instrument(datastores: Datastores | None = None) -> None:
    """Instrument every client whose address a rule names, made before or made later. Idempotent.

    So the clients that frameworks make are instrumented, each as :func:`instrument_client` does
    it with ``datastore`` and ``reads_from``; where the rule does not say it, a client reads from
    the primary if its read preference is ``primary``. A rule names one host or several of a set,
    and a client counts that names one of them. What a call for one client says goes before the
    rules. Clients of other addresses stay as they are.

    Args:
        datastores: rules for this store, such as ``{"posts": "mongodb://a,b:27018"}``; they go
            before those of ``configure(datastores=...)`` and ``ANTIPODE_DATASTORES``. None: those
            alone.

    Raises:
        ConfigurationError: a rule is malformed, or two give one address two names.
    """
    _wide.start(datastores)


def uninstrument() -> None:
    """Undo :func:`instrument`; clients that were instrumented by a call stay so. Idempotent."""
    _wide.stop()
    for client in list(implied):
        uninstrument_client(client)
    _forget()


def _made(client: Any) -> None:
    _forget()
    if getattr(client, "_antipode", None) is None:
        _wide.cover(client, tuple(_places(client)), None, partial(_take, client))


def _places(client: Any) -> Iterator[tuple[str, int]]:
    """The addresses that *client* was given; names of DNS are not resolved."""
    given = dict(client._init_kwargs)  # noqa: SLF001 - PyMongo shows these nowhere else
    hosts, port = given.get("host") or "localhost", given.get("port") or 27017
    for host in [hosts] if isinstance(hosts, str) else hosts:
        if "://" in host:
            yield from places_in(host)
        else:
            name, _, own = host.partition(":") if host.count(":") == 1 else (host, "", "")
            yield place_of(name.strip("[]"), int(own or port))


def _take(client: Any, rule: Rule) -> None:
    primary = client.read_preference.mode == 0
    reads_from: Any = rule.reads_from or ("primary" if primary else "replica")
    instrument_client(
        client, datastore=rule.datastore, reads_from=reads_from, one_server=rule.one_server
    )
    implied.add(client)
    with _lock:
        _clients.append((weakref.ref(client), client._antipode.shim))  # noqa: SLF001


def _forget() -> None:
    """Close what is registered for clients that are gone: some programs make many."""
    with _lock:
        gone = [shim for client, shim in _clients if client() is None]
        _clients[:] = [each for each in _clients if each[0]() is not None]
    for shim in gone:
        shim.close()


def _sync(module: Any) -> None:
    _wide.after(module.MongoClient, "__init__", _made)


def _async(module: Any) -> None:
    _wide.after(module.AsyncMongoClient, "__init__", _made)


_wide = ProcessWide(
    "mongodb",
    {
        "pymongo.synchronous.mongo_client": _sync,
        "pymongo.asynchronous.mongo_client": _async,
    },
)
