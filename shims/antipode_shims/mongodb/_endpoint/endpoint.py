"""The library's own connection to the server where a process reads."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Any

from antipode.shim import Endpoint, Observation, Unreachable
from antipode_shims.mongodb._clients.pymongo import (
    close,
    is_known,
    link_errors,
    pymongo_module,
    refusals,
)
from antipode_shims.mongodb._look import T, converse, hello, shown_in, target_in
from antipode_shims.mongodb._promises.records import records

from .wait import ServerWait

if TYPE_CHECKING:
    from collections.abc import Collection

    from antipode import Promise, WriteId
    from antipode.shim import ReadsFrom, Wake
    from antipode_shims.mongodb._look import Conversation, Look, Question, Target
    from antipode_shims.mongodb._position.history import LogHistory
    from antipode_shims.mongodb._position.reply import Reply, ServerState


class MongoEndpoint(Endpoint):
    """Polls with ``hello``; between polls the server holds a find back until it is due.

    Not pinned: the server may roll back under a live connection, and a recollection does not
    ask it.
    """

    pinned = False

    def __init__(
        self,
        client: Any,
        history: LogHistory,
        *,
        reads_from: ReadsFrom,
        majority: bool,
        wait_in: tuple[str, str],
        promised_in: str = "",
    ) -> None:
        """Poll through *client*, which is of this endpoint's own and has one server."""
        self._client = client
        self._history = history
        self._reads_from = reads_from
        self._majority = majority
        self._promised_in = promised_in
        self._target: Target | None = None
        self._wait = ServerWait(client, *wait_in)

    def observe(self, writes: Collection[WriteId], *, timeout_s: float) -> Observation:
        """Poll once; one round trip, more after a change of term.

        Raises:
            Unreachable: the connection failed, or the server cannot be read now.
            ConfigurationError: it is a mongos, or no member of a replica set.
            pymongo.errors.OperationFailure: it does not let this user in.
        """
        return self._talk(self._look(writes), timeout_s)

    def promised(self, promises: Collection[Promise], *, timeout_s: float) -> Observation:
        """Ask once for the records of *promises*; two round trips.

        Raises:
            Unreachable: as :meth:`observe`.
            ConfigurationError: as :meth:`observe`; or this user may not read there.
            pymongo.errors.OperationFailure: as :meth:`observe`.
        """
        return self._talk(self._find(promises), timeout_s)

    def follows(self, *, timeout_s: float) -> bool:
        """Whether the server is a secondary; one round trip.

        Raises:
            Unreachable: as :meth:`observe`.
            ConfigurationError: as :meth:`observe`.
        """
        return not self._talk(hello(), timeout_s).primary

    def _talk(self, look: Conversation[T], timeout_s: float) -> T:
        if not is_known(self._client):
            raise Unreachable("its server does not answer any more")
        try:
            return talk(self._client, look, timeout_s=timeout_s)
        except link_errors() as error:
            raise Unreachable(str(error) or type(error).__name__) from error

    def _find(self, promises: Collection[Promise]) -> Look:
        state = yield from self._hello()
        self._target, self.blocks = None, False  # The server cannot wait for a record.
        found = yield from records(self._promised_in, promises, majority=self._majority)
        return Observation(state.incarnation, {}, promises=found)

    def _hello(self) -> Conversation[ServerState]:
        state = yield from hello()
        if self._reads_from == "primary" and not state.primary:
            msg = "the server is not primary any more"
            raise Unreachable(msg)
        return state

    def _look(self, writes: Collection[WriteId]) -> Look:
        state = yield from self._hello()
        shown = yield from shown_in(state, writes, self._history, majority=self._majority)
        target = target_in(shown, state, majority=self._majority)
        self._target = target if target and self._wait.patience.has(target) else None
        self.blocks = self._target is not None
        return shown

    def pause(self, timeout_s: float, wake: Wake) -> None:
        """Wait for time, *wake*, or until the server shows the smallest position missed."""
        if self._target is None or wake.is_set():
            wake.wait(timeout_s)
            return
        done = self._wait.start(self._target, timeout_s)
        select.select([done, wake.fileno()], [], [], timeout_s)

    def rest(self) -> None:
        """End the wait on the server."""
        self._wait.stop()

    def close(self) -> None:
        """Release the connections. Idempotent."""
        self._wait.stop()
        close(self._client)


def talk(client: Any, conversation: Conversation[T], *, timeout_s: float) -> T:
    """Hold *conversation* with the one server of *client* within *timeout_s*.

    Raises:
        Exception: as PyMongo and the conversation do.
    """
    with pymongo_module().timeout(timeout_s):
        return converse(lambda question: _answer(client, question), conversation)


def _answer(client: Any, question: Question) -> Reply | Exception:
    database, command = question
    try:
        reply: Reply = client[database].command(dict(command))
    except link_errors():
        raise
    except refusals() as error:
        return error
    return reply
