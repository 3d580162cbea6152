"""Which datastore is at which address: the setting ``datastores``, and the clients it leaves out.

An entry is a name and a URL, as ``posts=mysql://db:3306``. Hosts are compared as they are spelled:
nothing is resolved, but the names of this machine's loopback are one.
"""

from __future__ import annotations

import re
import weakref
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from antipode._lineage.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
#: A host and its port; the path of a socket, or what stands for an address, with port 0.
Place: TypeAlias = "tuple[str, int]"

#: Names with their URLs, or the text of the variable.
Datastores: TypeAlias = "Mapping[str, str | Iterable[str]] | str"
ClientT = TypeVar("ClientT")
EXAMPLE = "posts=mysql://db:3306, feed=redis://cache:6379/0"
_SENTINEL = "redis+sentinel"
#: Of each scheme the store and its port.
_SCHEMES = {
    "redis": ("redis", 6379),
    "rediss": ("redis", 6379),
    "valkey": ("redis", 6379),
    "valkeys": ("redis", 6379),
    "unix": ("redis", 0),
    _SENTINEL: ("redis", 0),
    "mysql": ("mysql", 3306),
    "mariadb": ("mysql", 3306),
    "mongodb": ("mongodb", 27017),
    "mongodb+srv": ("mongodb", 0),
    "postgresql": ("postgresql", 5432),
    "postgres": ("postgresql", 5432),
    "amqp": ("rabbitmq", 5672),
    "amqps": ("rabbitmq", 5671),
    "stomp": ("activemq", 61613),
    "dynamodb": ("dynamodb", 443),
    "s3": ("s3", 443),
    "sns": ("sns", 443),
}
#: What may stand after the ``?`` of a store's URL.
_OPTIONS = {
    "redis": ("reads_from", "one_server"),
    "mysql": ("reads_from", "one_server", "unix_socket"),
    "mongodb": ("reads_from", "one_server"),
    "postgresql": ("reads_from", "one_server", "host"),
    "rabbitmq": ("receipts",),
    "activemq": ("receipts",),
    "dynamodb": ("reads_from",),
    "s3": ("reads_from",),
    "sns": (),
}
#: Whose clients are of a region, in which they name tables, buckets and topics.
_OF_REGIONS = frozenset({"dynamodb", "s3", "sns"})
_LOOPBACK = frozenset({"", "localhost", "127.0.0.1", "::1"})
#: Where an entry begins: MongoDB's URLs have commas of their own.
_BEGINS = re.compile(r"[,;\s]+(?=[^\s,;=:/?]+\s*=\s*[a-z][a-z0-9+]*://)")
_ENTRY = re.compile(r"([^\s,;=:/?]+)\s*=\s*(\S+)")


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry: what is at some addresses of one store.

    Attributes:
        datastore: its name.
        store: as :data:`_OPTIONS` names it.
        places: the addresses of one server or, of MongoDB, of a set.
        database: the number, schema or virtual host; None for all that are there.
        reads_from: ``primary`` or ``replica``; None where the entry does not say.
        one_server: None where the entry does not say.
        receipts: of RabbitMQ and ActiveMQ.
    """

    datastore: str
    store: str
    places: tuple[Place, ...]
    database: str | None = None
    reads_from: str | None = None
    one_server: bool | None = None
    receipts: bool = False


def parsed(text: str) -> tuple[Rule, ...]:
    """The entries of a variable.

    Raises:
        ConfigurationError: one of them is malformed, or two of them disagree.
    """
    pairs = []
    for each in filter(None, _BEGINS.split(text.strip(" ,;\n\t"))):
        match = _ENTRY.fullmatch(each.strip())
        if match is None:
            _refuse(_shown(each), f"an entry is a name and a URL, as in {EXAMPLE}")
        pairs.append((match[1], match[2]))
    return _agreeing(_rule(name, url) for name, url in pairs)


def taken(given: Datastores) -> tuple[Rule, ...]:
    """The entries of an argument: the text of the variable, or names with a URL or several.

    Raises:
        ConfigurationError: as :func:`parsed`.
    """
    if isinstance(given, str):
        return parsed(given)
    return _agreeing(_rule(name, url) for name, url in _pairs(given))


def _pairs(given: Mapping[str, str | Iterable[str]]) -> Iterator[tuple[str, str]]:
    for name, urls in given.items():
        for url in [urls] if isinstance(urls, str) else urls:
            yield name, url


def _refuse(shown: str, why: str) -> NoReturn:
    msg = f"datastores has {shown!r}: {why} (configure(datastores=...) or ANTIPODE_DATASTORES)"
    raise ConfigurationError(msg)


def _shown(text: str) -> str:
    """*text* without what may be a password."""
    return re.sub(r"//[^/@\s]*@", "//***@", text)


def _rule(name: str, url: str) -> Rule:
    shown = f"{name}={_shown(url)}"
    if not name or name.startswith("@"):
        _refuse(shown, "the name of a datastore is not empty and begins with no '@'")
    parts = urlsplit(url)
    scheme = parts.scheme
    if scheme.startswith(("mysql+", "mariadb+", "postgresql+")):
        scheme = scheme.partition("+")[0]
    if scheme not in _SCHEMES:
        _refuse(shown, f"its URL begins with one of {', '.join(f'{each}://' for each in _SCHEMES)}")
    store, _ = _SCHEMES[scheme]
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    socket = options.get("unix_socket", options.get("host", ""))
    if scheme == "unix":
        socket = parts.path
    if store in _OF_REGIONS and parts.path.strip("/"):
        _refuse(shown, "its URL is that of a region or of an endpoint, without a path")
    if parts.fragment or not (parts.netloc or socket):
        _refuse(shown, "its URL names no host")
    places = ((socket, 0),) if socket else _places(shown, parts.netloc, scheme)
    database = unquote(parts.path[1:]) if scheme != "unix" else ""
    return Rule(name, store, places, database or None, **_taken_options(shown, store, options))


def _places(shown: str, netloc: str, scheme: str) -> tuple[Place, ...]:
    store, port = _SCHEMES[scheme]
    hosts = netloc.rpartition("@")[2].split(",")
    if len(hosts) > 1 and store != "mongodb":
        _refuse(shown, "one host an entry: repeat the name for others, as in a=URL, a=URL")
    if scheme == _SENTINEL:
        return (sentinel_place(unquote(hosts[0])),)
    found = []
    for host in hosts:
        match = re.fullmatch(r"(\[[^]]+\]|[^:\[\]]*)(?::(\d+))?", unquote(host))
        if match is None:
            _refuse(shown, f"{host!r} is no host with a port")
        found.append(place_of(match[1].strip("[]"), int(match[2] or port)))
    return tuple(found)


def _taken_options(shown: str, store: str, options: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for option, value in options.items():
        if option not in _OPTIONS[store]:
            known = ", ".join(_OPTIONS[store]) or "nothing"
            _refuse(shown, f"it takes {known} after '?', not {option!r}")
        if option == "reads_from":
            allowed, found[option] = ("primary", "replica"), value
        elif option in ("unix_socket", "host"):
            continue
        else:
            allowed, found[option] = ("true", "false"), value == "true"
        if value not in allowed:
            _refuse(shown, f"{option} is {' or '.join(allowed)}, not {value!r}")
    return found


def _agreeing(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules, each once; no two say different things of one address."""
    found: list[Rule] = []
    for rule in rules:
        for other in found:
            if rule == other or not _same_address(rule, other):
                continue
            where = described(rule.store, _common(rule, other)[0], rule.database)
            if rule.datastore == other.datastore:
                _refuse(rule.datastore, f"{where} is named twice, with different options")
            names = f"{other.datastore} and {rule.datastore}"
            _refuse(names, f"{where} has two names: give the one that every service uses")
        if rule not in found:
            found.append(rule)
    return tuple(found)


def _same_address(one: Rule, other: Rule) -> bool:
    same = one.store == other.store and one.database == other.database
    return same and bool(_common(one, other))


def _common(one: Rule, other: Rule) -> list[Place]:
    return [place for place in one.places if place in other.places]


def place_of(host: str | None, port: int) -> Place:
    """An address as it is compared: names in small letters, this machine's as ``localhost``."""
    name = (host or "").lower().rstrip(".")
    return ("localhost" if name in _LOOPBACK else name), port


def sentinel_place(service: str) -> Place:
    """What stands for the address of a *service* that Sentinels watch."""
    return f"sentinel {service}", 0


def places_in(url: str) -> tuple[Place, ...]:
    """The addresses that a client's own URL names; none where it is no such URL."""
    parts = urlsplit(url)
    try:
        return _places("", parts.netloc, parts.scheme) if parts.scheme in _SCHEMES else ()
    except ConfigurationError:
        return ()


def rule_for(
    rules: Iterable[Rule], store: str, places: Iterable[Place], database: str | None
) -> Rule | None:
    """The rule that names a client's datastore: one that names its database goes before others.

    Args:
        rules: the entries.
        store: of the client.
        places: its addresses, any of which counts.
        database: its number, schema or virtual host; None where that is not known.
    """
    there = [
        rule
        for rule in rules
        if rule.store == store
        and rule.database in (None, database)
        and any(place in rule.places for place in places)
    ]
    return max(there, key=lambda rule: rule.database is not None, default=None)


def described(store: str, place: Place, database: str | None) -> str:
    """An address, for people."""
    host, port = place
    where = f"{host}:{port}" if port else host
    return f"{store} at {where}" + (f"/{database}" if database else "")


#: Where clients are that were made and have no name, by their ids, with what shows that they live.
_unnamed: dict[int, tuple[str, weakref.ref[object]]] = {}
#: Of clients that are gone.
_gone: dict[str, None] = {}
_MOST_GONE = 100
_own: ContextVar[bool] = ContextVar("antipode_own_client", default=False)


def own_client(
    make: Callable[[], ClientT], *, within: Callable[[ClientT], object] = lambda client: client
) -> ClientT:
    """The client that *make* makes, which is the library's own: no rule is for it.

    Args:
        make: makes it.
        within: the object in it that rules would be asked for.
    """
    token = _own.set(True)
    try:
        client = make()
    finally:
        _own.reset(token)
    within(client)._antipode_own = True  # type: ignore[attr-defined] # noqa: SLF001
    return client


def is_own(client: object) -> bool:
    """Whether *client* is the library's own, or is being made as one."""
    return _own.get() or getattr(client, "_antipode_own", False)


def unnamed(client: object, where: str) -> None:
    """Note that no rule names the datastore of *client*."""
    number = id(client)

    def gone(_: object) -> None:
        if _unnamed.pop(number, None) is not None and len(_gone) < _MOST_GONE:
            _gone[where] = None

    _unnamed[number] = where, weakref.ref(client, gone)


def named(client: object) -> None:
    """Note that *client* was instrumented."""
    _unnamed.pop(id(client), None)


def clients_without_names() -> list[str]:
    """Where clients are, or were, that were made and not instrumented, each once."""
    return sorted({*_gone, *(where for where, _ in list(_unnamed.values()))})


def forget_clients() -> None:
    """Forget the clients that have no name."""
    _unnamed.clear()
    _gone.clear()
