"""PyMySQL connections that also keep lineages beside rows. Import only where PyMySQL is."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from pymysql.protocol import MysqlPacket

from antipode.shim import unread
from antipode_shims.mysql._beside.triggers import FORGET
from antipode_shims.mysql._position.flavor import COVER

from .pymysql import QUERY, SyncConnection
from .tap import COLUMNS, ROWS, SLICE_S

if TYPE_CHECKING:
    from antipode import Lineage


class SyncBesideConnection(SyncConnection):
    """Mixed into the class of an instrumented ``pymysql.Connection``."""

    def _execute_command(self, command: int, sql: bytes | str) -> None:
        tap = self._antipode
        if tap.own:
            self._antipode_send(command, sql)
            return
        beside = tap.rows
        if tap.state:
            self._antipode_drain()
            beside.give()
        beside.started()
        raw, found = beside.about(sql) if command == QUERY else (b"", 0)
        text = beside.lineage(found)
        beside.take()
        try:
            if found:
                sql = self._antipode_beside(raw, found, text)
            super()._execute_command(command, sql)
        except BaseException:
            beside.give()
            raise

    def _antipode_prepare(self) -> None:
        """Find out about the server, and whether its tables can keep lineages."""
        super()._antipode_prepare()
        tap = self._antipode
        tap.ready = False
        before = tap.session.status
        tap.shim.converse(tap.shim.check_tables(tap.known()), self._antipode_ask)
        if after := tap.rows.behind_check(before):
            self._antipode_ask(after)
            tap.session.heard(before)
        tap.ready = True

    def _antipode_beside(self, sql: bytes, found: int, text: str) -> bytes:
        """Set the session's variables for a write, rewrite a read."""
        beside = self._antipode.rows
        if not self._antipode.ready:
            self._antipode_prepare()
        if setting := beside.setting(text):
            try:
                self._antipode_ask(setting)
            except BaseException:
                beside.unset()
                raise
        return beside.reading(sql, found)

    def _read_packet(self, packet_type: Any = MysqlPacket) -> Any:
        tap = self._antipode
        if tap.own or not tap.state:
            return super()._read_packet(packet_type)
        beside, before = tap.rows, tap.state
        if before == COLUMNS and packet_type is MysqlPacket:
            for _ in range(beside.columns):  # Behind the application's columns come ours.
                self._antipode_read(packet_type)
        try:
            packet = super()._read_packet(packet_type)
        except BaseException:
            if not tap.state:
                beside.give()
            raise
        if beside.columns and tap.state:
            self._antipode_take_out(before, packet)
        if beside.due and (not tap.state or (before == ROWS and self._result is not None)):
            beside.read(_asking(self))
        if not tap.state:
            self._antipode_graves()
            beside.give()
        return packet

    def _antipode_graves(self) -> None:
        """Behind a read that found nothing: what the deletions of its rows depended on."""
        beside = self._antipode.rows
        try:
            for question in beside.graves():
                beside.buried(self._antipode_ask(question))
        except Exception as error:  # noqa: BLE001 - the application's read succeeded
            unread(self._antipode.shim.datastore, f"a deletion ({error})")

    def _antipode_take_out(self, before: int, packet: Any) -> None:
        """Take our columns out of a result's first packet, and their values out of its rows."""
        tap = self._antipode
        if before == ROWS:
            tap.rows.row(packet._data)  # noqa: SLF001
        elif tap.state == COLUMNS and before != COLUMNS:
            packet._data = tap.rows.header(packet._data)  # noqa: SLF001

    def close(self) -> None:
        """Sample what reads put off, and close."""
        self._antipode.rows.settle()
        plain: Any = super()
        plain.close()

    def _antipode_forget(self) -> None:
        """Let later writes of this connection have no lineage."""
        beside = self._antipode.rows
        beside.settle()
        if beside.held and self._sock is not None:
            try:
                if self._antipode.state:
                    self._antipode_drain()
                self._antipode_ask(FORGET)
            except Exception:  # noqa: BLE001 - what it still holds goes with it
                self.close()

    def _antipode_cover(self) -> Lineage | None:
        """What the reads so far may have seen; None where it cannot be asked any more."""
        tap = self._antipode
        with tap.rows.between(SLICE_S) as free:
            if not free or tap.state or self._sock is None:
                return None
            flavor = tap.known().flavor
            try:
                return tap.shim.covering(flavor, self._antipode_ask(COVER[flavor]))
            except Exception:  # noqa: BLE001 - whatever it is, the position is not known
                return None


def _asking(connection: SyncBesideConnection) -> Any:
    """Asks the connection for as long as the application has it."""
    held = weakref.ref(connection)

    def ask() -> Lineage | None:
        alive = held()
        if alive is None or not isinstance(alive, SyncBesideConnection):
            return None
        return alive._antipode_cover()  # noqa: SLF001

    return ask
