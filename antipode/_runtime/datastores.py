"""Which datastore is at which address: the setting ``datastores``, and the clients it leaves out.

An entry is a name and a URL, as ``posts=mysql://db:3306``. Hosts are compared as they are spelled:
nothing is resolved, but the names of this machine's loopback are one, and so are all spellings of
one address of IPv6. What no client could match is refused as it is read.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import weakref
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from antipode._lineage.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from urllib.parse import SplitResult
#: A host and its port; the path of a socket, or what stands for an address, with port 0.
Place: TypeAlias = "tuple[str, int]"

#: Names with their URLs, or the text of the variable.
Datastores: TypeAlias = "Mapping[str, str | Iterable[str]] | str"
ClientT = TypeVar("ClientT")
EXAMPLE = "posts=mysql://db:3306, feed=redis://cache:6379/0"
#: Who says which datastore a client is of; the first that says it counts. A client keeps the name
#: that it has until it is released. Also a table of docs/reference/settings.md.
PRECEDENCE = (
    "a call for the client: `instrument_client`, `instrument_engine` and their like",
    "rules given to a store's `instrument(datastores)`",
    "`setup(datastores=...)` or `configure(datastores=...)`, whichever was called last",
    "`ANTIPODE_DATASTORES`",
)
_SENTINEL = "redis+sentinel"
_SENTINEL_PORT = 26379
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
    "redis": ("reads_from", "one_server", "both"),
    "mysql": ("reads_from", "one_server", "both", "unix_socket"),
    "mongodb": ("reads_from", "one_server", "both"),
    "postgresql": ("reads_from", "one_server", "both", "host"),
    "rabbitmq": ("receipts",),
    "activemq": ("receipts",),
    "dynamodb": ("reads_from",),
    "s3": ("reads_from",),
    "sns": (),
}
#: Whose clients are of a region, in which they name tables, buckets and topics.
_OF_REGIONS = frozenset({"dynamodb", "s3", "sns"})
#: Whose clients are of a whole server or set, and what they call what lies in it.
_OF_WHOLES = {"mongodb": "databases", "activemq": "destinations"}
_MOST_SHOWN = 200
_MOST_SAID = 500
_MOST_PORT = 65535
_MOST_DIGITS = 9
_LOOPBACK = frozenset({"", "localhost", "127.0.0.1", "::1"})
#: Where an entry begins: MongoDB's URLs have commas of their own.
_BEGINS = re.compile(r"(?<![,;\s])[,;\s]+(?=[^\s,;=:/?]+\s*=\s*[a-z][a-z0-9+]*://)")
#: Where a URL has no port after a host, but perhaps a password that was cut at one of its signs.
_NO_PORT = re.compile(r"(//[^:/?#\[\s]*):(?!\d{1,5}(?:[/?,]|$)).*", re.DOTALL)
#: An option of a URL.
_OPTION = re.compile(r"[?&]([^=&?\s]*)=[^&\s]*")
_ENTRY = re.compile(r"([^\s,;=:/?]+)\s*=\s*(\S+)")


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry: what is at some addresses of one store.

    Attributes:
        datastore: its name; ``-`` for what is no datastore of the application's.
        store: as :data:`_OPTIONS` names it.
        places: the addresses of one server or, of MongoDB, of a set.
        database: the number, schema or virtual host; None for all that are there.
        reads_from: ``primary`` or ``replica``; None where the entry does not say.
        one_server: None where the entry does not say.
        receipts: of RabbitMQ and ActiveMQ.
        both: whether one server stands for primary and replica, as in tests: a dry run judges its
            reads as those of a replica.
    """

    datastore: str
    store: str
    places: tuple[Place, ...]
    database: str | None = None
    reads_from: str | None = None
    one_server: bool | None = None
    receipts: bool = False
    both: bool = False


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
    said = why if len(why) <= _MOST_SAID else f"{why[:_MOST_SAID]}..."
    msg = f"datastores has {shown!r}: {said} (configure(datastores=...) or ANTIPODE_DATASTORES)"
    raise ConfigurationError(msg)


def _shown(text: str) -> str:
    """*text* without what may be a password, whatever signs it has in it."""
    hidden = re.sub(r"//.*@", "//***@", text, flags=re.DOTALL)
    before, slashes, rest = hidden.partition("//")
    if "@" in before:
        hidden = f"***@{before.rpartition('@')[2]}{slashes}{rest}"
    hidden = _NO_PORT.sub(r"\1:***", hidden)
    hidden = _OPTION.sub(_without_secret, hidden)
    return hidden if len(hidden) <= _MOST_SHOWN else f"{hidden[:_MOST_SHOWN]}..."


def _without_secret(option: re.Match[str]) -> str:
    """An option as it stands, if it is one that is known; else without its value."""
    known = any(option[1] in each for each in _OPTIONS.values())
    return option[0] if known else f"{option[0].partition('=')[0]}=***"


def _split(shown: str, url: str) -> tuple[SplitResult, str]:
    """The parts of a URL, and its scheme without a driver."""
    try:
        parts = urlsplit(url)
    except ValueError:
        _refuse(shown, "an address in brackets is one of IPv6")
    scheme = parts.scheme
    if scheme.startswith(("mysql+", "mariadb+", "postgresql+")):
        scheme = scheme.partition("+")[0]
    if scheme not in _SCHEMES:
        _refuse(shown, f"its URL begins with one of {', '.join(f'{each}://' for each in _SCHEMES)}")
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":
        _refuse(shown, "in a user or a password, write / as %2F, ? as %3F, # as %23, @ as %40")
    return parts, scheme


def _rule(name: str, url: str) -> Rule:
    shown = f"{name}={_shown(url)}"
    if not name or name.startswith("@"):
        _refuse(shown, "the name of a datastore is not empty and begins with no '@'")
    parts, scheme = _split(shown, url)
    store, _ = _SCHEMES[scheme]
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    path = options.get("unix_socket", options.get("host", ""))
    if scheme == "unix":
        path = parts.path
    if store in _OF_REGIONS and parts.path.strip("/"):
        _refuse(shown, "its URL is that of a region or of an endpoint, without a path")
    if parts.fragment or not (parts.netloc or path):
        _refuse(shown, "its URL names no host")
    database = unquote(parts.path[1:]) if scheme != "unix" else ""
    if path and not path.startswith(("/", "@")):
        _refuse(shown, "the path of a socket begins with '/'; a host stands after '//'")
    if path:
        places: tuple[Place, ...] = ((path, 0),)
    elif scheme == _SENTINEL:
        places, database = _sentinels(shown, parts.netloc, database)
    else:
        places = _places(shown, parts.netloc, scheme)
    _require_matchable(shown, store, database)
    taken_options = _taken_options(shown, store, options)
    if taken_options.get("both") and "reads_from" in taken_options:
        _refuse(shown, "both=true says where it is read: take reads_from out")
    return Rule(name, store, places, database or None, **taken_options)


def _require_matchable(shown: str, store: str, database: str) -> None:
    """Refuse a *database* that no client of *store* is of."""
    if database and (within := _OF_WHOLES.get(store)):
        _refuse(shown, f"a rule of {store} is for all {within}: take '/{database}' off its URL")
    if store == "redis" and database and str(_number(database)) != database:
        _refuse(shown, f"databases of Redis have numbers, as in /0, not {database!r}")


def _number(text: str) -> int | None:
    """The number that *text* is in decimal digits; None where it is none, or far too long."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else None


def _places(shown: str, netloc: str, scheme: str) -> tuple[Place, ...]:
    store, port = _SCHEMES[scheme]
    hosts = netloc.rpartition("@")[2].split(",")
    if len(hosts) > 1 and store != "mongodb":
        _refuse(shown, "one host an entry: repeat the name for others, as in a=URL, a=URL")
    return tuple(_place(shown, host, port) for host in hosts)


def _place(shown: str, host: str, port: int) -> Place:
    match = re.fullmatch(r"(\[[^]]+\]|[^:\[\]]*)(?::(\d{1,5}))?", unquote(host))
    if match is None and host.count(":") > 1 and "[" not in host:
        _refuse(shown, "an address of IPv6 stands in brackets, as in [2001:db8::1]:6379")
    if match is None:
        _refuse(shown, "what stands for its host is no host with a port")
    if match[2] and not (port and 0 < int(match[2]) <= _MOST_PORT):
        _refuse(shown, f"a port is 1 to {_MOST_PORT}" if port else "its URL takes no port")
    return place_of(match[1].strip("[]"), int(match[2] or port))


def _sentinels(shown: str, netloc: str, path: str) -> tuple[tuple[Place, ...], str]:
    """Of a service that Sentinels watch, and its database.

    ``mymaster/1`` is that service, whoever watches it; ``s1:26379,s2:26379/mymaster/1`` the one
    that these Sentinels watch.
    """
    hosts = netloc.rpartition("@")[2]
    service, _, database = path.partition("/")
    if not service or service.isdecimal():
        if "," in hosts or ":" in hosts:
            _refuse(shown, "name the service as well, as in redis+sentinel://s1:26379,s2/mymaster")
        return (sentinel_place(unquote(hosts)),), path
    watching = [_place(shown, host, _SENTINEL_PORT) for host in hosts.split(",")]
    return tuple(sentinel_place(service, *place) for place in watching), database


def _taken_options(shown: str, store: str, options: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for option, value in options.items():
        if option == "db" and store == "redis":
            _refuse(
                shown, "a database is a path, as in redis://cache/1; a rule of a socket is for all"
            )
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
    found: dict[Rule, None] = {}
    held: dict[tuple[str, str | None, Place], Rule] = {}
    for rule in rules:
        for place in rule.places:
            other = held.setdefault((rule.store, rule.database, place), rule)
            if other != rule:
                _disagree(other, rule, described(rule.store, place, rule.database))
        found[rule] = None
    return tuple(found)


def _disagree(one: Rule, other: Rule, where: str) -> NoReturn:
    if one.datastore == other.datastore:
        _refuse(one.datastore, f"{where} is named twice, with different options")
    names = f"{one.datastore} and {other.datastore}"
    if "-" in (one.datastore, other.datastore):
        _refuse(names, f"{where} is a datastore and is none ('-'): take one of the entries out")
    _refuse(names, f"{where} has two names: give the one that every service uses")


def place_of(host: str | None, port: int) -> Place:
    """An address as it is compared: names in small letters, this machine's as ``localhost``."""
    return _spelled(host or ""), port


@lru_cache(maxsize=512)
def _spelled(host: str) -> str:
    name = host.lower().rstrip(".")
    if ":" in name:
        try:
            address = ipaddress.IPv6Address(name)
        except ValueError:
            return name
        name = str(address.ipv4_mapped or address)
    return "localhost" if name in _LOOPBACK else name


def connected_place(descriptor: int) -> Place | None:
    """The address that a connected socket leads to; None where there is none.

    Args:
        descriptor: of the socket, which stays the client's.
    """
    try:
        with socket.socket(fileno=os.dup(descriptor)) as connected:
            peer = connected.getpeername()
    except OSError:
        return None
    if isinstance(peer, tuple):
        return place_of(str(peer[0]), int(peer[1]))
    return (os.fsdecode(peer), 0) if peer else None


def sentinel_place(service: str, host: str | None = None, port: int = 0) -> Place:
    """What stands for the address of a *service* that Sentinels watch; None: whichever do."""
    return (f"sentinel {service}" if host is None else f"sentinel {service} by {host}"), port


def places_in(url: str) -> tuple[Place, ...]:
    """The addresses that a client's own URL names; none where it is no such URL."""
    try:
        parts = urlsplit(url)
        return _places("", parts.netloc, parts.scheme) if parts.scheme in _SCHEMES else ()
    except (ConfigurationError, ValueError):
        return ()


def rule_for(
    rules: Iterable[Rule], store: str, places: Iterable[Place], database: str | None
) -> Rule | None:
    """The rule that names a client's datastore: one that names its database goes before others.

    Args:
        rules: the entries, of which the first counts.
        store: of the client.
        places: its addresses, any of which counts, the most exact one first.
        database: its number, schema or virtual host; None where that is not known.
    """
    found = list(places)
    there = [
        rule
        for rule in rules
        if rule.store == store
        and rule.database in (None, database)
        and any(place in rule.places for place in found)
    ]

    def exact(rule: Rule) -> tuple[bool, int]:
        first = next(at for at, place in enumerate(found) if place in rule.places)
        return rule.database is not None, -first

    return max(there, key=exact, default=None)


def described(store: str, place: Place, database: str | None) -> str:
    """An address, for people."""
    host, port = place
    where = f"{host}:{port}" if port else host
    return f"{store} at {where}" + (f"/{plain(database)}" if database else "")


def plain(database: str) -> str:
    """A *database* as it may be shown: a password with a '/' ends up there."""
    return f"***@{database.rpartition('@')[2]}" if "@" in database else database


#: Where clients are that were made and have no name, by their ids, with what shows that they live.
_unnamed: dict[int, tuple[str, weakref.ref[object]]] = {}
#: Of clients that are gone.
_gone: dict[str, None] = {}
_MOST_GONE = 100
#: The URL of the rule that would name a client, by where that is.
_entries: dict[str, str] = {}
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


def unnamed(client: object, where: str, entry: str = "") -> None:
    """Note that no rule names the datastore of *client*; the URL *entry* would."""
    number = id(client)
    if len(_entries) < _MOST_GONE:
        _entries[where] = entry

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


def entry_of(where: str) -> str:
    """The URL of the rule that would name a client without a name; empty where it is not known."""
    return _entries.get(where, "")


def forget_clients() -> None:
    """Forget the clients that have no name."""
    _unnamed.clear()
    _gone.clear()
    _entries.clear()
