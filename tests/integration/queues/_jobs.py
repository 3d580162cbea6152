"""What jobs do in the tests of queues: functions that a worker imports by their names."""

from __future__ import annotations

from typing import Any

import antipode
from antipode import Lineage, WriteId
from antipode.shim import register, scope_in, unregister
from antipode_shims import embedded

HOUR = 498_669
#: What jobs of this process saw: their names, and the lineages of their scopes.
seen: list[tuple[str, Lineage]] = []
scopes: list[Any] = []


def post(number: int) -> WriteId:
    """A write that some request made."""
    return WriteId("posts", f"p{number}", 1, HOUR)


def own(number: int) -> WriteId:
    """A write that the job of that number makes."""
    return WriteId("mine", f"a{number}", 1, HOUR)


def note(what: str) -> None:
    """Write down what a job depends on."""
    held = scope_in()
    assert held is not None, what
    scopes.append(held)
    seen.append((what, held.lineage))


def see(number: int) -> int:
    """A job that writes, and whose result is its number."""
    note(f"see {number}")
    antipode.append(own(number))
    return number


def fail(number: int) -> None:
    """A job that writes something else at each attempt, and fails."""
    note(f"fail {number}")
    antipode.append(own(number + len(seen)))
    raise RuntimeError(number)


def stop(number: int) -> None:
    """A job that discards its lineage, and fails."""
    note(f"stop {number}")
    antipode.stop()
    raise RuntimeError(number)


def follow(came: object) -> None:
    """A job that gets what the one before returned, or raised."""
    note(f"follow {came}")


async def look(number: int) -> int:
    """A job that is a coroutine."""
    note(f"look {number}")
    antipode.append(own(number))
    return number


def without() -> bool:
    """Whether there is no scope."""
    return scope_in() is None


def read(replica: Any, key: str, *, waits: bool) -> bytes | None:
    """A post, at a late replica, in a process that has nothing of who wrote it."""
    reader = embedded.shim("posts", replica, reads_from="replica")
    register(reader)
    try:
        if waits:
            antipode.barrier(timeout=30)
        value, _ = reader.read(key)
        return value
    finally:
        unregister("posts")
