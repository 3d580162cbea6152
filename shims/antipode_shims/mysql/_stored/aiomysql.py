"""aiomysql connections that also store lineages with rows: the asyncio twin of ``pymysql``.

Nobody can wait for a server where the lineage is used: the position of a read is asked for after
it, before its caller goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pymysql.protocol import MysqlPacket

from antipode.shim import lineage_not_read, record_read
from antipode_shims.mysql._clients.aiomysql import AsyncConnection
from antipode_shims.mysql._clients.pymysql import QUERY
from antipode_shims.mysql._clients.tap import COLUMNS, ROWS
from antipode_shims.mysql._position.flavor import COVER

if TYPE_CHECKING:
    from antipode import Lineage

    from .lineages import RowLineages
    from .tap import StoredTap


class AsyncStoredConnection(AsyncConnection):
    """Mixed into the class of an instrumented ``aiomysql.Connection``."""

    _antipode: StoredTap  # pyright: ignore[reportIncompatibleVariableOverride]

    async def _execute_command(self, command: int, sql: bytes | str) -> None:
        tap = self._antipode
        if tap.own:
            await super()._execute_command(command, sql)
            return
        if tap.state:
            await self._antipode_drain()
        stored = tap.stored
        stored.started()
        if command == QUERY:
            await self._antipode_learn()
        raw, found = stored.about(sql) if command == QUERY else (b"", 0)
        if found:
            sql = await self._antipode_stored(raw, found, stored.lineage(found, tap))
        await super()._execute_command(command, sql)

    async def _antipode_prepare(self) -> None:
        """Find out about the server, and whether its tables can keep lineages."""
        await super()._antipode_prepare()
        tap = self._antipode
        tap.ready = False
        before = tap.session.status
        steps = tap.stored.check_tables(tap.known())
        await tap.shim.converse_async(steps, self._antipode_ask)
        if after := tap.stored.behind_check(before):
            await self._antipode_ask(after)
            tap.session.heard(before)
        tap.ready = True

    async def _antipode_learn(self) -> None:
        """Find out which views show rows that have lineages, before a statement is judged."""
        tap = self._antipode
        if not tap.ready:
            await self._antipode_prepare()
        before = tap.session.status
        if not tap.stored.views_due(before):
            return
        await tap.shim.converse_async(tap.stored.check_views(), self._antipode_ask)
        if after := tap.stored.behind_check(before):
            await self._antipode_ask(after)
            tap.session.heard(before)

    async def _antipode_stored(self, sql: bytes, found: int, text: str) -> bytes:
        """Set the session's variables for a write, rewrite a read."""
        stored = self._antipode.stored
        if setting := stored.setting(text):
            try:
                await self._antipode_ask(setting)
            except BaseException:
                stored.unset()
                raise
        return stored.reading(sql, found)

    async def _read_packet(self, packet_type: Any = MysqlPacket) -> Any:
        tap = self._antipode
        if tap.own or not tap.state:
            return await super()._read_packet(packet_type)
        stored, before = tap.stored, tap.state
        if before == COLUMNS and packet_type is MysqlPacket:
            for _ in range(stored.columns):  # After the application's columns come ours.
                await self._antipode_read(packet_type)
        packet = await super()._read_packet(packet_type)
        if stored.columns and tap.state:
            if before == ROWS:
                stored.row(packet._data)  # noqa: SLF001
            elif tap.state == COLUMNS and before != COLUMNS:
                packet._data = stored.header(packet._data)  # noqa: SLF001
        if stored.due and before == ROWS and self._result is not None:
            stored.read(_too_early)  # Unbuffered: the application sees rows before their end.
        elif not tap.state:
            await self._antipode_graves(stored)
            await self._antipode_cover(stored)
        return packet

    def _antipode_forget(self) -> None:
        """Let later writes of this connection have no lineage: nobody can wait here to say so."""
        if self._antipode.stored.held and self._writer is not None:
            plain: Any = super()
            plain.close()

    async def _antipode_graves(self, stored: RowLineages) -> None:
        """After a read that found nothing: what the deletions of its rows depended on."""
        try:
            for question in stored.graves():
                stored.buried(await self._antipode_ask(question))
        except Exception as error:  # noqa: BLE001 - the application's read succeeded
            lineage_not_read(self._antipode.shim.datastore, f"a deletion ({error})")

    async def _antipode_cover(self, stored: RowLineages) -> None:
        """Sample what the reply that has ended may have seen."""
        tap = self._antipode
        cover = stored.cover
        if not stored.due and (cover is None or cover.settled):
            return
        stored.due = False
        try:
            rows = await self._antipode_ask(COVER[tap.known().flavor])
        except Exception:  # noqa: BLE001 - whatever it is, the position is not known
            found = None
        else:
            found = tap.shim.covering(tap.known().flavor, rows)
        if cover is not None and not cover.settled:
            cover.settle(found)
        else:
            record_read(tap.shim.read_at(found))


def _too_early() -> Lineage | None:
    """What can be known of a read whose rows have not all come."""
    return None
