"""PyMySQL connections that also store lineages with rows. Import only where PyMySQL is."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from pymysql.protocol import MysqlPacket

from antipode.shim import lineage_not_read
from antipode_shims.mysql._clients.pymysql import QUERY, SyncConnection
from antipode_shims.mysql._clients.tap import COLUMNS, ROWS, SLICE_S
from antipode_shims.mysql._position.flavor import COVER

from .triggers import FORGET

if TYPE_CHECKING:
    from antipode import Lineage

    from .tap import StoredTap


class SyncStoredConnection(SyncConnection):
    """Mixed into the class of an instrumented ``pymysql.Connection``."""

    _antipode: StoredTap  # pyright: ignore[reportIncompatibleVariableOverride]

    def _execute_command(self, command: int, sql: bytes | str) -> None:
        tap = self._antipode
        if tap.own:
            self._antipode_send(command, sql)
            return
        stored = tap.stored
        if tap.state:
            self._antipode_drain()
            tap.gate.give()
        stored.started()
        if command == QUERY:
            with tap.gate.taken():
                self._antipode_learn()
        raw, found = stored.about(sql) if command == QUERY else (b"", 0)
        text = stored.lineage(found, tap)
        tap.gate.take()
        try:
            if found:
                sql = self._antipode_stored(raw, found, text)
            super()._execute_command(command, sql)
        except BaseException:
            tap.gate.give()
            raise

    def _antipode_prepare(self) -> None:
        """Find out about the server, and whether its tables can keep lineages."""
        super()._antipode_prepare()
        tap = self._antipode
        tap.ready = False
        before = tap.session.status
        tap.shim.converse(tap.stored.check_tables(tap.known()), self._antipode_ask)
        if after := tap.stored.behind_check(before):
            self._antipode_ask(after)
            tap.session.heard(before)
        tap.ready = True

    def _antipode_learn(self) -> None:
        """Find out which views show rows that have lineages, before a statement is judged."""
        tap = self._antipode
        if not tap.ready:
            self._antipode_prepare()
        before = tap.session.status
        if not tap.stored.views_due(before):
            return
        tap.shim.converse(tap.stored.check_views(), self._antipode_ask)
        if after := tap.stored.behind_check(before):
            self._antipode_ask(after)
            tap.session.heard(before)

    def _antipode_stored(self, sql: bytes, found: int, text: str) -> bytes:
        """Set the session's variables for a write, rewrite a read."""
        stored = self._antipode.stored
        if setting := stored.setting(text):
            try:
                self._antipode_ask(setting)
            except BaseException:
                stored.unset()
                raise
        return stored.reading(sql, found)

    def _read_packet(self, packet_type: Any = MysqlPacket) -> Any:
        tap = self._antipode
        if tap.own or not tap.state:
            return super()._read_packet(packet_type)
        stored, before = tap.stored, tap.state
        if before == COLUMNS and packet_type is MysqlPacket:
            for _ in range(stored.columns):  # After the application's columns come ours.
                self._antipode_read(packet_type)
        try:
            packet = super()._read_packet(packet_type)
        except BaseException:
            if not tap.state:
                tap.gate.give()
            raise
        if stored.columns and tap.state:
            self._antipode_take_out(before, packet)
        if stored.due and (not tap.state or (before == ROWS and self._result is not None)):
            stored.read(_asking(self))
        if not tap.state:
            self._antipode_graves()
            tap.gate.give()
        return packet

    def _antipode_graves(self) -> None:
        """After a read that found nothing: what the deletions of its rows depended on."""
        stored = self._antipode.stored
        try:
            for question in stored.graves():
                stored.buried(self._antipode_ask(question))
        except Exception as error:  # noqa: BLE001 - the application's read succeeded
            lineage_not_read(self._antipode.shim.datastore, f"a deletion ({error})")

    def _antipode_take_out(self, before: int, packet: Any) -> None:
        """Take our columns out of a result's first packet, and their values out of its rows."""
        tap = self._antipode
        if before == ROWS:
            tap.stored.row(packet._data)  # noqa: SLF001
        elif tap.state == COLUMNS and before != COLUMNS:
            packet._data = tap.stored.header(packet._data)  # noqa: SLF001

    def close(self) -> None:
        """Sample what reads put off, and close."""
        self._antipode.stored.settle()
        plain: Any = super()
        plain.close()

    def _antipode_forget(self) -> None:
        """Let later writes of this connection have no lineage."""
        stored = self._antipode.stored
        stored.settle()
        if stored.held and self._sock is not None:
            try:
                if self._antipode.state:
                    self._antipode_drain()
                self._antipode_ask(FORGET)
            except Exception:  # noqa: BLE001 - what it still holds goes with it
                self.close()

    def _antipode_cover(self) -> Lineage | None:
        """What the reads so far may have seen; None where it cannot be asked any more."""
        tap = self._antipode
        with tap.gate.between(SLICE_S) as free:
            if not free or tap.state or self._sock is None:
                return None
            flavor = tap.known().flavor
            try:
                return tap.shim.covering(flavor, self._antipode_ask(COVER[flavor]))
            except Exception:  # noqa: BLE001 - whatever it is, the position is not known
                return None


def _asking(connection: SyncStoredConnection) -> Any:
    """Asks the connection for as long as the application has it."""
    held = weakref.ref(connection)

    def ask() -> Lineage | None:
        alive = held()
        if alive is None or not isinstance(alive, SyncStoredConnection):
            return None
        return alive._antipode_cover()  # noqa: SLF001

    return ask
