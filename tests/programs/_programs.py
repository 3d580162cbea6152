"""All random programs by name, and their clients; each runs in any process."""

from __future__ import annotations

import traceback
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._line import Client

#: By name, where the clients of each program are.
PROGRAMS: Mapping[str, tuple[str, str]] = {
    "cancel": ("_cancel", "CLIENTS"),
    "cpp": ("_cpp", "CLIENTS"),
    "java": ("_java", "CLIENTS"),
    "sessions": ("_sessions.clients", "CLIENTS"),
    "brokers": ("_sessions.clients", "BROKERS"),
    "failovers": ("_failovers", "CLIENTS"),
}
#: Those that run only where they are named: they take too long.
NAMED: frozenset[str] = frozenset({"brokers", "failovers", "java"})
#: Which clients of a program CI plays, where not all: ``--clients ci``. The others are nightly.
IN_CI: Mapping[str, frozenset[str]] = {
    "java": frozenset(
        {
            *("postgresql", "postgresql-manual", "mysql", "mariadb"),
            *("mariadb-pools", "postgresql-mappers", "postgresql-coroutines"),
            *("dynamodb-futures", "s3-futures"),
        }
    )
}


def clients_of(name: str) -> Mapping[str, Client]:
    """The clients of one program, which is imported now: others need drivers that it does not."""
    module, attribute = PROGRAMS[name]
    found: Mapping[str, Client] = getattr(import_module(f".{module}", __package__), attribute)
    return found


def run(name: str, client: str, steps: int, seed: int) -> bool:
    """Print the line of one client; whether it is sound."""
    try:
        line = clients_of(name)[client](steps, seed)
    except Exception:  # noqa: BLE001 - a line that is missing is a fault, and the others follow
        traceback.print_exc()
        print(f"{name} {client}: no line", flush=True)
        return False
    print(f"{name} {client}: {line}", flush=True)
    return line.sound
