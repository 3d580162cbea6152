"""One PostgreSQL server of a topology: its role, its place in the log, its settings."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antipode_testing._errors import ClientMissing
from antipode_testing._wait import wait_until
from antipode_testing.servers.node import FedNode

from .native import ADMINISTRATOR, FOLLOWS, NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import Address
    from antipode_testing._proxy import LagProxy
    from antipode_testing._topology import Provider

CLIENT_TIMEOUT_S = 60
#: How far the log reaches here, as a number.
POSITION = (
    "(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()"
    " ELSE pg_current_wal_flush_lsn() END - '0/0'::pg_lsn)::bigint"
)


@dataclass
class PostgreSQLNode(FedNode):
    """A server; its settings are those of ``ALTER SYSTEM``."""

    # An administrator's connection, for one thread at a time.
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _connection: Any = None

    def execute(
        self, statement: str, *args: object, database: str = "postgres"
    ) -> list[dict[str, Any]]:
        """Run one statement as the administrator."""
        self._require_awake()
        with self._lock, self._live_connection(database).cursor() as cursor:
            cursor.execute(statement, args or None)
            return list(cursor.fetchall()) if cursor.description else []

    def value(self, expression: str, *args: object) -> Any:
        """Select one value."""
        return self.execute(f"SELECT {expression} AS value", *args)[0]["value"]

    @property
    def leads(self) -> bool:
        """Whether it takes writes."""
        return not self.value("pg_is_in_recovery()")

    def position(self) -> int:
        """How far its log reaches: what it has flushed, or replayed."""
        return int(self.value(POSITION))

    def settings(self, *names: str) -> dict[str, Any]:
        """What a setting had before the first change: nothing of ``ALTER SYSTEM``'s."""
        return dict.fromkeys(names)

    def apply(self, settings: Mapping[str, Any]) -> None:
        """Change settings that a reload changes; None takes a change back."""
        for name, value in settings.items():
            change = f"SET {name} = '{value}'" if value is not None else f"RESET {name}"
            self.execute(f"ALTER SYSTEM {change}")
        if settings:
            self.execute("SELECT pg_reload_conf()")
            # Sessions take them in one by one, as soon as each is idle.
            self.disconnect()

    def hold_applier(self) -> None:
        """Go on receiving, and replay nothing."""
        self.execute("SELECT pg_wal_replay_pause()")
        wait_until(
            lambda: self.value("pg_get_wal_replay_pause_state()") == "paused",
            what="replay to pause",
            timeout_s=CLIENT_TIMEOUT_S,
        )

    def release_applier(self) -> None:
        """Replay what was received, and what comes."""
        if not self.leads:
            self.execute("SELECT pg_wal_replay_resume()")

    def drain(self, *, timeout_s: float) -> None:
        """Return once all that was received is replayed, unless that is held."""
        if self.value("pg_is_wal_replay_paused()"):
            return
        received = "coalesce(pg_last_wal_receive_lsn(), '0/0') <= pg_last_wal_replay_lsn()"
        wait_until(lambda: bool(self.value(received)), what="replay", timeout_s=timeout_s)

    def lead(self) -> None:
        """Be promoted; return when it takes writes."""
        self.execute("SELECT pg_promote(true, %s)", CLIENT_TIMEOUT_S)
        wait_until(lambda: self.leads, what="a promotion", timeout_s=CLIENT_TIMEOUT_S)

    def await_following(self, primary: PostgreSQLNode, *, timeout_s: float) -> None:
        """Return once this standby streams from that very primary."""
        seen = "SELECT 1 FROM pg_stat_replication WHERE application_name = %s"

        def streams() -> bool:
            name = f"{NAME}{self.address.port}"
            return bool(primary.execute(f"{seen} AND state = 'streaming'", name))

        wait_until(streams, what="a standby to follow its primary", timeout_s=timeout_s)

    def await_position(self, position: int, *, timeout_s: float) -> None:
        """Return once this standby has replayed the log up to a position."""
        wait_until(lambda: self.position() >= position, what="replay", timeout_s=timeout_s)

    def restart(self, *, graceful: bool, wipe: bool = False) -> None:
        """Start the process again at its address, in the role that it had."""
        self.disconnect()
        changed = self.changed
        super().restart(graceful=graceful, wipe=wipe)
        self.changed = {} if wipe else changed  # ALTER SYSTEM outlives a process.

    def disconnect(self) -> None:
        """Give the administrator's connection up."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(Exception):
                    connection.close()

    def suspend(self) -> None:
        """Freeze the process."""
        self.disconnect()
        super().suspend()

    def close(self) -> None:
        """Stop the server and its proxy."""
        self.disconnect()
        super().close()

    def _live_connection(self, database: str) -> Any:
        held = self._connection
        if held is None or held.closed or held.info.dbname != database:
            if held is not None:
                held.close()
            self._connection = _connect(self.address, database)
        return self._connection


def launch(
    provider: Provider, name: str, *, config: Mapping[str, str], feed: LagProxy | None
) -> PostgreSQLNode:
    """Start one server: a primary without a feed, else a copy of what the feed leads to.

    Raises:
        ClientMissing: psycopg is not installed.
    """
    _psycopg()
    follows = {} if feed is None else {FOLLOWS: _source(feed.address)}
    return PostgreSQLNode(provider.start("postgresql", name, {**config, **follows}), feed=feed)


def _source(feed: Address) -> str:
    return f"host={feed.host} port={feed.port} user={ADMINISTRATOR}"


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise ClientMissing(
            "a PostgreSQL topology needs psycopg: pip install antipode-xcy[postgresql]"
        ) from error
    return psycopg


def _connect(address: Address, database: str) -> Any:
    psycopg = _psycopg()
    return psycopg.connect(
        host=address.host,
        port=address.port,
        user=ADMINISTRATOR,
        dbname=database,
        autocommit=True,
        connect_timeout=CLIENT_TIMEOUT_S,
        row_factory=psycopg.rows.dict_row,
    )
