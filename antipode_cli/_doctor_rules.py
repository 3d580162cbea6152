"""What ``antipode doctor`` says of rules: whether each finds its clients, or will."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from antipode.diagnostics import (
    applied,
    clients_without_names,
    described,
    is_set_up,
    unmatched_rules,
    url_of,
)

from ._check import Check, ok, problem, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from antipode.shim import Config, Rule

_SETUP = (
    "call antipode.setup() first in the module that the service starts with, or start it by "
    "opentelemetry-instrument"
)
_CORRECT = "correct the address in the rule, or in the client"
_LATER = "its clients are made later, and instrumented then"


def set_up(*, registered: bool, propagates: bool) -> Iterator[Check]:
    """Whether anything is set up in a process whose application was imported."""
    if not (is_set_up() or registered or propagates):
        said = "nothing of the library is set up in this process"
        yield problem("setup", said, _SETUP)


def rules(settings: Config, timeout_s: float) -> Iterator[Check]:
    """What there is to say of each rule that found no client."""
    yield from _unapplied(settings.datastores)
    without = clients_without_names()
    for rule in unmatched_rules():
        near = [where for where in without if is_near(rule, where)]
        yield judged(rule, near, reachable=_reachable(rule, timeout_s))


def judged(rule: Rule, near: Iterable[str], *, reachable: bool | None) -> Check:
    """What it means that *rule* found no client.

    Args:
        rule: the entry.
        near: clients without a name whose address is nearly that of the rule.
        reachable: whether anything answers at its address; None where that is not known.
    """
    where = shown(rule)
    found = sorted(near, key=lambda each: (not _one_sign_apart(rule, each), each))
    meant = found if not reachable else [each for each in found if _one_sign_apart(rule, each)]
    if meant:
        said = f"{where}: no client is there, and {meant[0]} has no name"
        if reachable:  # Perhaps another server, whose clients are made later.
            return unknown("rules", said, _CORRECT)
        return problem("rules", f"{said}; nothing answers there", _CORRECT)
    if reachable is False:
        said = f"{where}: no client is there, and nothing answers there"
        todo = "start it, or correct the rule; a service that never uses it needs nothing"
        return unknown("rules", said, todo)
    answers = "its server answers; " if reachable else ""
    return ok("rules", f"{where}: {answers}{_LATER}")


def shown(rule: Rule) -> str:
    """An entry, for people: without user and password."""
    return f"{rule.datastore}={url_of(rule.store, rule.places[0], rule.database)}"


def is_near(rule: Rule, where: str) -> bool:
    """Whether a client *where* may be one that *rule* means: its host is the same, or its port."""
    host, port = _host_and_port(where)
    return where.startswith(f"{rule.store} at ") and any(
        (place[0] == host) or (place[1] and str(place[1]) == port) for place in rule.places
    )


def _host_and_port(where: str) -> tuple[str, str]:
    address = where.partition(" at ")[2].partition("/")[0]
    host, _, port = address.rpartition(":")
    return host, port


def _one_sign_apart(rule: Rule, where: str) -> bool:
    """Whether the address of *rule* becomes that of a client by one sign, or by its database."""
    address = where.partition(" at ")[2].partition("/")[0]
    for place in rule.places:
        own = described(rule.store, place, None).partition(" at ")[2]
        if own == address or _differ_by_one(own, address):
            return True
    return False


def _differ_by_one(one: str, other: str) -> bool:
    """Whether one sign is added, left out, another, or has changed places with the next."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if len({*pair}) > 1), -1
    )
    if start < 0:
        return len(one) != len(other)
    left, right = one[start:], other[start:]
    swapped = left[1::-1] + left[2:]
    return right in (left[1:], swapped) or left == right[1:] or left[1:] == right[1:]


def _reachable(rule: Rule, timeout_s: float) -> bool | None:
    """Whether anything takes a connection at an address of *rule*; None where none can be tried."""
    tried = False
    for host, port in rule.places:
        if not port and not host.startswith("/"):
            continue  # A service of Sentinels, or a name of DNS that stands for several servers.
        if rule.store in ("dynamodb", "s3", "sns") or host.startswith("sentinel "):
            continue
        tried = True
        with suppress(OSError):
            _connect(host, port, timeout_s)
            return True
    return False if tried else None


def _connect(host: str, port: int, timeout_s: float) -> None:
    """Connect once.

    Raises:
        OSError: nothing answers, or its name is not known here.
    """
    if port:
        socket.create_connection((host, port), timeout_s).close()
        return
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(timeout_s)
        one.connect(host)


def _unapplied(configured: Iterable[Rule]) -> Iterator[Check]:
    """Rules of the setting that nothing in this process goes by."""
    stores: dict[str, list[str]] = {}
    for rule in configured:
        if not applied(rule.store):
            stores.setdefault(rule.store, []).append(rule.datastore)
    for store, names in stores.items():
        said = (
            f"rules for {', '.join(dict.fromkeys(names))}: nothing instruments clients of {store}"
        )
        if any(where.startswith(f"{store} at ") for where in clients_without_names()):
            skipped = f" without {store!r} in skip" if is_set_up() else ""
            todo = f"call antipode.setup(){skipped}"
            yield problem("rules", f"{said}, and there are some", todo)
        else:
            yield ok("rules", f"{said}, and there is none")
