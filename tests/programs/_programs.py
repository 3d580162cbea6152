"""All random programs by name, and their clients; each runs in any process."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from ._cancel import CLIENTS as CANCEL
from ._cpp import CLIENTS as CPP
from ._failovers import CLIENTS as FAILOVERS
from ._java import CLIENTS as JAVA
from ._sessions.clients import BROKERS
from ._sessions.clients import CLIENTS as SESSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._line import Client

#: By name, the clients of each program.
PROGRAMS: Mapping[str, Mapping[str, Client]] = {
    "cancel": CANCEL,
    "cpp": CPP,
    "java": JAVA,
    "sessions": SESSIONS,
    "brokers": BROKERS,
    "failovers": FAILOVERS,
}
#: Those that run only where they are named: they take too long.
NAMED: frozenset[str] = frozenset({"brokers", "failovers", "java"})
#: Which clients of a program CI plays, where not all: ``--clients ci``. The others are nightly.
IN_CI: Mapping[str, frozenset[str]] = {
    "java": frozenset(
        {
            *("postgresql", "postgresql-manual", "mysql", "mariadb"),
            *("mariadb-pools", "postgresql-mappers"),
        }
    )
}


def run(name: str, client: str, steps: int, seed: int) -> bool:
    """Print the line of one client; whether it is sound."""
    try:
        line = PROGRAMS[name][client](steps, seed)
    except Exception:  # noqa: BLE001 - a line that is missing is a fault, and the others follow
        traceback.print_exc()
        print(f"{name} {client}: no line", flush=True)
        return False
    print(f"{name} {client}: {line}", flush=True)
    return line.sound
