"""What ``antipode doctor`` can learn of the datastores that a process registered."""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import combinations
from typing import TYPE_CHECKING

from antipode import ConfigurationError, Status, WriteId
from antipode.diagnostics import (
    clients_without_names,
    entry_of,
    follows,
    holds_any,
    looking_shim,
    registered,
    rules_in_force,
    unmatched_rules,
)
from antipode.shim import Unreachable, Wake, shims_of

from ._check import Check, ok, problem, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from antipode.diagnostics import Store
    from antipode.shim import Observation

#: How often an address is connected to, to see whether one server answers there.
_LOOKS = 4
_PAUSE_S = 0.05
_REGISTER = (
    "call the shim()s and instrument_*()s of your datastores in what --app names, or name a "
    "function that does"
)
_NAME_THEM = (
    "where requests depend on what is there, name it in ANTIPODE_DATASTORES and call "
    "antipode.setup(), or instrument the client"
)
_ADD = "add {} (?reads_from=replica for a replica), or {} where it is no datastore of yours"
_SPELL_ALIKE = (
    "if they are one datastore, spell it alike in every service: a barrier for one name does not "
    "hold the reads of the other"
)
_ONE_NAME = (
    "give the rules of both addresses one name: a barrier for one does not hold the reads of the "
    "other"
)
_UNREACHABLE = (
    "start it, or correct its address in the application: barriers would wait for it until their "
    "deadline"
)
_RIGHTS = "see the rights, versions and settings that its guide asks for"
_CAVEAT = (
    "grant what is missing, or take filters away, or read what they leave out under another name"
)
_GUIDE = "mind what its guide says of it"
_HOLDS_NONE = (
    "instrument the clients that read, or wait by barrier() or the options of consumers (see their "
    "guides)"
)
_REPLICA = (
    "say reads_from='replica', or no read of it is judged in a dry run; in a ring of primaries "
    "that follow each other, leave it"
)
_AT_READ = "use barrier(at='read') there: the connection that reads is then asked"


def stores(*, imported: bool, timeout_s: float, automatic: bool) -> Iterator[Check]:
    """What there is to say of each datastore."""
    if without := clients_without_names():
        said = f"clients that nothing instruments: {', '.join(without)}"
        entries = list(filter(None, map(entry_of, without)))
        named, others = (", ".join(f"{name}={each}" for each in entries) for name in ("NAME", "-"))
        todo = f"{_NAME_THEM}: {_ADD.format(named, others)}" if entries else _NAME_THEM
        yield unknown("addresses", said, todo)
    names = registered()
    later = sorted({each.datastore for each in unmatched_rules()}.difference(names))
    if not names and later:
        said = f"named by rules, without a client yet: {', '.join(later)}"
        yield ok("datastores", said)
        return
    if not names:
        said = "no datastore is registered"
        if imported:
            yield problem("datastores", f"{said}: barriers have nobody to ask", _REGISTER)
        else:
            todo = "name your application: antipode doctor --app package.module"
            yield unknown("datastores", f"{said} without an application", todo)
        return
    more = f"; named by rules, without a client yet: {', '.join(later)}" if later else ""
    yield ok("datastores", f"registered: {', '.join(names)}{more}")
    if automatic:
        yield _automatic()
    for name in names:
        yield from _store(name, timeout_s)
    yield from _doubles(names, timeout_s)


def _doubles(names: Sequence[str], timeout_s: float) -> Iterator[Check]:
    """Datastores that are one store: where a read goes by another name, nothing is waited for."""
    servers = {name: _servers(name, timeout_s) for name in names}
    logs = {name: _logs(name, timeout_s) for name in names}

    def has(name: str, other: str) -> bool:
        found = logs[other]
        return any(_has(shim, log, timeout_s) for log in found for shim in shims_of(name))

    for one, other in combinations(names, 2):
        # Each has the log of the other where both lead to a server that takes writes: said once.
        if has(other, one) or servers[one] & servers[other]:
            yield _double(one, other)
        elif has(one, other):
            yield _double(other, one)


def _servers(name: str, timeout_s: float) -> set[str]:
    """The incarnations of the servers that answer as *name*; none where that is not known."""
    found: set[str] = set()
    for shim in shims_of(name):
        with suppress(Exception):  # What is wrong with it was said before.
            found.add(_look(shim, _nothing(name), timeout_s)[0].server)
    return found - {""}


def _double(name: str, other: str) -> Check:
    """A problem where rules say that both are all that is there, or one and the same part of it."""
    said = f"its server has the log of {name!r}"
    for one in rules_in_force():
        for second in rules_in_force():
            if (one.datastore, second.datastore) == (name, other) and (
                None in (one.database, second.database) or one.database == second.database
            ):
                return problem(other, f"{said}: one store has two names", _ONE_NAME)
    return unknown(other, said, _SPELL_ALIKE)


def _logs(name: str, timeout_s: float) -> set[str]:
    """The names of the logs that the primaries of *name* write now; none where one is away."""
    found: set[str] = set()
    for shim in shims_of(name):
        with suppress(Exception):  # What is wrong with it was said before.
            writes = shim.fence(timeout_s=timeout_s) if shim.fences else ()
            found.update(write.key for write in writes)
    return found


def _has(shim: Store, log: str, timeout_s: float) -> bool:
    """Whether the server of *shim* has a log, whose name no other store's can have by chance."""
    start = shim.log_start(log)
    if start is None:
        return False
    with suppress(Exception):  # As above.
        shown, _ = _look(shim, frozenset([start]), timeout_s)
        return shown.statuses.get(start) is Status.VISIBLE
    return False


def _automatic() -> Check:
    """Whether automatic barriers have any reads to hold."""
    if holds_any():
        return ok("automatic", "reads of instrumented clients wait automatically")
    said = "barriers='auto' is configured, and no registered client can hold reads back"
    return problem("automatic", said, _HOLDS_NONE)


def _store(name: str, timeout_s: float) -> Iterator[Check]:
    shims = shims_of(name)
    reads = {shim.reads_from for shim in shims}
    if not any(shim.waitable for shim in shims):
        todo = "give it receipts if somebody must wait for its messages (see its guide)"
        yield unknown(name, "its writes cannot be waited for, and barriers let them pass", todo)
        return
    try:
        looking = looking_shim(name)
    except ConfigurationError as error:
        yield problem(name, str(error), _AT_READ)
        return
    role = "replica" if "replica" in reads else "primary"
    if looking is None:
        yield _at_the_read(name, role, shims, timeout_s)
        return
    yield from _answering(name, looking, shims, timeout_s)


def _at_the_read(name: str, role: str, shims: Iterable[Store], timeout_s: float) -> Check:
    """Whether any server that may answer is one that reads can wait at."""
    for shim in shims:
        if wrong := _wrong(name, shim, timeout_s):
            return problem(name, wrong, _RIGHTS)
    said = f"which server answers is known at the read alone, so the {role} was not asked"
    return unknown(name, said, _AT_READ)


def _wrong(name: str, shim: Store, timeout_s: float) -> str:
    """What is to be said of the server that answers now; nothing where it is away."""
    try:
        return _look(shim, _nothing(name), timeout_s)[0].caveat
    except ConfigurationError as error:
        return str(error)
    except Exception:  # noqa: BLE001 - whether it answers is for the read to learn
        return ""


def _answering(
    name: str, looking: Store, shims: Iterable[Store], timeout_s: float
) -> Iterator[Check]:
    """Whether the server that barriers poll answers, and is one server."""
    role = looking.reads_from
    if role == "primary" and follows(looking, timeout_s=timeout_s):
        said = "it is registered with reads_from='primary', and its server says it is a replica"
        yield unknown(name, said, _REPLICA)
    try:
        writes = _writes(name, shims, timeout_s)
        looks = [_look(looking, writes, timeout_s) for _ in range(_LOOKS)]
    except _Silent as error:
        yield problem(name, f"its primary does not answer: {error}", _UNREACHABLE)
    except Unreachable as error:
        yield problem(name, f"its {role} does not answer: {error}", _UNREACHABLE)
    except ConfigurationError as error:
        yield problem(name, str(error), _RIGHTS)
    except Exception as error:  # noqa: BLE001 - whatever a client library raises is the answer
        said = f"its {role} cannot be asked what a barrier asks: {type(error).__name__}: {error}"
        yield problem(name, said, _RIGHTS)
    else:
        if hazard := looks[0][1]:
            yield unknown(name, hazard, _GUIDE)
        yield _shown(name, role, [shown for shown, _ in looks])


class _Silent(Exception):  # noqa: N818 - an answer, like Unreachable
    """The primary does not answer."""


def _shown(name: str, role: str, looks: list[Observation]) -> Check:
    """What several new connections to one address showed."""
    servers = {shown.server for shown in looks}
    if len(servers) > 1:
        said = f"{len(servers)} servers answer as its {role}: a barrier may ask another than reads"
        return problem(name, said, f"name one server, or {_AT_READ}")
    if caveat := looks[0].caveat:
        return problem(name, f"its {role} answers, but {caveat}", _CAVEAT)
    return ok(name, f"its {role} answers, the same server {_LOOKS} times")


def _writes(name: str, shims: Iterable[Store], timeout_s: float) -> frozenset[WriteId]:
    """Something to ask for: the primary's position, where this process can ask for it.

    Raises:
        _Silent: the primary does not answer.
    """
    try:
        for shim in shims:
            if shim.fences and (found := shim.fence(timeout_s=timeout_s)):
                return found
    except Unreachable as error:
        raise _Silent(str(error)) from error
    return _nothing(name)


def _nothing(name: str) -> frozenset[WriteId]:
    """What no server has."""
    return frozenset([WriteId(name, "antipode-doctor", 1, covering=True)])


def _look(shim: Store, writes: frozenset[WriteId], timeout_s: float) -> tuple[Observation, str]:
    """What the server shows that answers a new connection, and what nobody can know of it.

    Raises:
        Unreachable: none does within *timeout_s* seconds.
    """
    deadline_s = time.monotonic() + timeout_s
    endpoint, wake = shim.open_endpoint(timeout_s=timeout_s), Wake()
    try:
        while True:
            shown = endpoint.observe(writes, timeout_s=timeout_s)
            if Status.UNREACHABLE not in shown.statuses.values():
                return shown, endpoint.hazard
            # Who listens in the background may not have connected yet.
            if time.monotonic() > deadline_s:
                raise Unreachable("; ".join(sorted(set(shown.causes.values()))))
            wake.wait(_PAUSE_S)
    finally:
        endpoint.close()
