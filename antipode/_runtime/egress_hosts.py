"""Which hosts ``egress_hosts`` names, however a name or an address is spelled."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address

_BELOW = "*."
_MAX_PORT = 65_535
#: Of addresses of pages, patterns and lists: none of it is part of a host's name.
_FOREIGN = re.compile(r"[\s/\\?#@*,]")
#: The ends of names that no registry gives to anybody.
_INTERNAL = (
    *(".internal", ".local", ".localhost", ".localdomain", ".svc", ".lan", ".test"),
    *(".home.arpa", ".intranet", ".private", ".corp"),
)
_PORT = re.compile(r"[0-9]{1,5}")


def refused(entry: str) -> bool:
    """Whether *entry* of ``egress_hosts`` names no host, so that it would never match one."""
    host, port, whole = _split(entry.removeprefix(_BELOW))
    known = port is None or 0 < port <= _MAX_PORT
    return not (whole and known and host.strip(".")) or _FOREIGN.search(host) is not None


def has_port(entry: str) -> bool:
    """Whether *entry*, which is not refused, is of one port alone."""
    return _split(entry.removeprefix(_BELOW))[1] is not None


@lru_cache(maxsize=2048)
def names(allowed: frozenset[str], host: str, port: int | None = None) -> bool:
    """Whether one of *allowed* names *host*.

    Names are compared in any case, with or without a trailing dot, in letters of any script or as
    ``xn--``; addresses by what they are, in any spelling. An entry with a port names that alone.

    Args:
        allowed: the entries of ``egress_hosts``.
        host: a name or an address; a port after it counts where *port* is None.
        port: where the call goes to; None when that is not known.
    """
    bare, found, _ = _split(host)
    bare, port = _normal(bare), found if port is None else port
    return any(_matches(entry, bare, port) for entry in allowed)


def is_internal(host: str) -> bool:
    """Whether *host* is of this network as far as its name says: no domain that anybody owns."""
    bare = _normal(_split(host)[0])
    try:
        return not ip_address(bare).is_global
    except ValueError:
        return "." not in bare or bare.endswith(_INTERNAL)


def _matches(entry: str, host: str, port: int | None) -> bool:
    name, only, _ = _split(entry.removeprefix(_BELOW))
    if only is not None and only != port:
        return False
    name = _normal(name)
    return host.endswith(f".{name}") if entry.startswith(_BELOW) else host == name


def _split(text: str) -> tuple[str, int | None, bool]:
    """The host and the port of *text*, and whether that is all there is."""
    text = text.strip()
    if text.startswith("["):  # An IPv6 address.
        host, bracket, port = text[1:].partition("]")
        if not port:
            return host, None, bool(bracket)
        whole = port.startswith(":") and _PORT.fullmatch(port, 1) is not None
        return host, int(port[1:]) if whole else None, whole
    host, colon, port = text.partition(":")
    if not colon or ":" in port:  # None, or an IPv6 address without brackets.
        return text, None, True
    whole = _PORT.fullmatch(port) is not None
    return host, int(port) if whole else None, whole


def _normal(host: str) -> str:
    """One spelling for each host; a name that cannot be one stays as it is, and matches itself."""
    host = host.lower().removesuffix(".")
    if ":" in host:
        from ipaddress import ip_address

        try:
            return ip_address(host).compressed
        except ValueError:
            return host
    if host.isascii():
        return host
    try:
        return _ascii(host)
    except UnicodeError:  # Of which the package's own error is one.
        return host


def _ascii(host: str) -> str:
    """*host* as it is asked for: by the package that every HTTP client uses, where it is there."""
    try:
        import idna
    except ImportError:
        return host.encode("idna").decode("ascii")
    return idna.encode(host, uts46=True).decode("ascii")
