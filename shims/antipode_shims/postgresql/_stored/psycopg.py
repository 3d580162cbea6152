"""psycopg 3 connections that also store lineages with rows. Import only where psycopg is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg import pq

from antipode_shims.postgresql._clients.holding import Ask, clients_own
from antipode_shims.postgresql._clients.psycopg import AsyncConnection, Shared, SyncConnection
from antipode_shims.postgresql._clients.tap import Session
from antipode_shims.postgresql._look import Refused
from antipode_shims.postgresql._statements import ANYTHING

from .lineages import FORGET, NOTHING_SHOWN, Shown, Unanswered
from .sought import Spoken

if TYPE_CHECKING:
    from antipode.shim import Steps
    from antipode_shims.postgresql._clients.holding import Call
    from antipode_shims.postgresql._clients.psycopg import Piped
    from antipode_shims.postgresql._look import Asking
    from antipode_shims.postgresql._position import Rows

    from .lineages import StoredTap

#: The generators after which a cursor has results, and whether these are all of its statement.
_SHOWING = {
    "_execute_gen": True,
    "_executemany_gen_pipeline": True,
    "_executemany_gen_no_pipeline": True,
    "_declare_gen": True,
    "_fetch_gen": False,
    "_stream_fetchone_gen": False,
}


def shown_by(gen: Any) -> Shown:
    """What *gen* is about to show."""
    code = getattr(gen, "gi_code", None)
    every = _SHOWING.get("" if code is None else code.co_name)
    if every is None or not hasattr(gen.gi_frame.f_locals.get("self"), "pgresult"):
        return NOTHING_SHOWN
    return Shown(gen.gi_frame.f_locals["self"], gen.gi_frame, every=every)


class StoredShared(Shared[Any]):
    """What both APIs share."""

    _antipode: StoredTap  # pyright: ignore[reportIncompatibleVariableOverride]

    def _antipode_hold(self, call: Call) -> Steps[None]:
        """Wait until the statement of *call* may be sent, and ask and set what it needs."""
        plain: Any = super()
        if (steps := plain._antipode_hold(call)) is not None:  # noqa: SLF001 - a mixin of ours
            yield from steps
        yield Ask(self._antipode_before(call))

    def _antipode_before(self, call: Call) -> Asking[None]:
        """What to ask and to set before a statement, once it may be sent."""
        piping = self.pgconn.pipeline_status != pq.PipelineStatus.OFF
        session = Session.BUSY if self._antipode_waits() else self._antipode_session()
        found = ANYTHING if call.sql is None else self._antipode.shim.meanings[call.sql]
        return self._antipode.stored.before(
            call.sql,
            found,
            session,
            opens=call.opens and call.cursor is not None,
            piped=piping,
            pid=self.pgconn.backend_pid,
        )

    def _antipode_waits(self) -> bool:
        """Whether replies of the application's are still to come, or the Sync of a pipeline."""
        if self._pipeline is not None:
            return self._antipode_busy()
        return self._antipode_session() is Session.BUSY

    def _antipode_queued(self, setting: str) -> Rows:
        """Put a setting before what the pipeline sends next; no rows."""
        tap = self._antipode
        if self._pipeline is None:
            return []  # Rows come one by one, and the client refuses the statement.
        tap.own = True
        try:
            for _ in self._exec_command(setting):
                pass  # It is queued: nothing is waited for.
        finally:
            tap.own = False
        return []

    def _antipode_with(self, command: str) -> str:
        """With a BEGIN goes what the writes of its transaction depend on."""
        stored = self._antipode.stored
        if command.startswith(("COMMIT", "ROLLBACK")):
            stored.ends(within=" TO " in command, commits=command.startswith("COMMIT"))
        return stored.begins() if command.startswith("BEGIN") else ""

    def _antipode_left(
        self, error: BaseException | None, call: Call | None, piped: Piped | None
    ) -> Any:
        """What is left to ask now that a call is over: also for the lineages of its rows."""
        tap = self._antipode
        steps = super()._antipode_left(error, call, piped)
        shown, tap.shown = tap.shown, NOTHING_SHOWN
        results: list[Any] = []
        if shown.cursor is not None and error is None:
            results = shown.cursor._results if shown.every else [shown.cursor.pgresult]  # noqa: SLF001
        more = tap.stored.after(
            [result for result in results if result is not None],
            self._antipode_session(),
            failed=error is not None,
            busy=self._antipode_waits(),
            pid=self.pgconn.backend_pid,
            spoken=None if shown.cursor is None else _spoken(shown),
            escape=pq.Escaping(self.pgconn).escape_literal,
        )
        return _both(steps, more) if steps is not None and more is not None else steps or more


def _spoken(shown: Shown) -> Spoken | None:
    """What the client made of a statement and its parameters.

    A cursor does not keep what it executes by the name of a prepared statement, as it does by
    itself from the sixth time on: its generator had it.
    """
    query = shown.cursor._query  # noqa: SLF001 - no attribute that is public has the parameters
    if query is None:
        query = shown.frame.f_locals.get("pgq")
    if query is None:
        return None
    binary = [each == pq.Format.BINARY for each in query.formats or ()]
    return Spoken(bytes(query.query), query.params or (), binary)


def _both(first: Asking[None], second: Asking[None]) -> Asking[None]:
    yield from first
    yield from second


class SyncStoredConnection(StoredShared, SyncConnection[Any]):  # pyright: ignore[reportIncompatibleVariableOverride]
    """Mixed into the class of an instrumented ``psycopg.Connection``."""

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Drive *gen*, and know which cursor it fills."""
        if not self._antipode.own:
            self._antipode.shown = shown_by(gen)
        try:
            return super().wait(gen, *args, **options)
        except Refused as refused:
            raise clients_own(refused) from None

    def _antipode_ask(self, text: str) -> Rows:
        if isinstance(text, Unanswered):
            return self._antipode_queued(text)
        return super()._antipode_ask(text)

    lock: Any

    def _antipode_forget(self) -> None:
        """Let later writes of this connection have no lineage."""
        if self._antipode.stored.held and self.pgconn.status == pq.ConnStatus.OK:
            try:
                with self.lock:
                    self._antipode_ask(FORGET)
            except Exception:  # noqa: BLE001 - what it still holds goes with it
                self.pgconn.finish()


class AsyncStoredConnection(StoredShared, AsyncConnection[Any]):  # pyright: ignore[reportIncompatibleVariableOverride]
    """Mixed into the class of an instrumented ``psycopg.AsyncConnection``."""

    async def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Drive *gen*, and know which cursor it fills."""
        if not self._antipode.own:
            self._antipode.shown = shown_by(gen)
        try:
            return await super().wait(gen, *args, **options)
        except Refused as refused:
            raise clients_own(refused) from None

    async def _antipode_ask(self, text: str) -> Rows:
        if isinstance(text, Unanswered):
            return self._antipode_queued(text)
        return await super()._antipode_ask(text)

    def _antipode_forget(self) -> None:
        """Let later writes of this connection have no lineage: nobody can wait here to say so."""
        if self._antipode.stored.held:
            self.pgconn.finish()
