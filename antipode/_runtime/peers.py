"""Whether a peer answers with lineages, as the setting ``peers`` says of hosts and paths."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, TypeAlias

from . import egress_hosts

Answers = Literal["always", "never", "auto"]
ANSWERS = ("always", "never", "auto")
#: The entries of the setting, and what each says.
Peers: TypeAlias = "tuple[tuple[str, Answers], ...]"


def refused(entry: str) -> bool:
    """Whether *entry* names no host, so that it would never match a call."""
    host, path = _split(entry)
    return egress_hosts.refused(host) or any(sign in path for sign in "?# ")


def expected(peers: Peers, host: str, port: int | None, path: str) -> tuple[Answers, str]:
    """What *peers* says of a call, and the path of the entry that says it.

    Of the entries that match, the one with the most exact host counts, then the longest path.
    Without one it is ``auto``, for the whole host.

    Args:
        peers: the setting.
        host: whom the call goes to; a port after it counts where *port* is None.
        port: None where it is not known.
        path: of the call, from its first ``/`` on, without a query.
    """
    for above, answers in _at(peers, host, port):
        if path == above or path.startswith(f"{above}/"):
            return answers, above
    return "auto", ""


@lru_cache(maxsize=2048)
def _at(peers: Peers, host: str, port: int | None) -> tuple[tuple[str, Answers], ...]:
    """The paths of *peers* at one host, in the order in which they count."""
    found: list[tuple[tuple[bool, bool, int, int], str, Answers]] = []
    for entry, answers in peers:
        name, path = _split(entry)
        if egress_hosts.names(frozenset({name}), host, port):
            exact = (not name.startswith("*."), egress_hosts.has_port(name), len(name), len(path))
            found.append((exact, path, answers))
    found.sort(reverse=True)
    return tuple((path, answers) for _, path, answers in found)


def _split(entry: str) -> tuple[str, str]:
    """The host of *entry* and its path, which is empty for the whole host."""
    host, slash, path = entry.strip().partition("/")
    return host, f"{slash}{path}".rstrip("/")
