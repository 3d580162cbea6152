"""Waits on the server: during a barrier, which can leave at any moment, and before a read."""

from __future__ import annotations

import logging
import socket
import threading
from typing import TYPE_CHECKING, Any

from antipode_shims.mongodb._clients.pymongo import link_errors, pymongo_module, refusals

if TYPE_CHECKING:
    from antipode_shims.mongodb._look import Target

#: The longest that one find may be held back, in seconds.
SLICE_S = 1.0
_KILL_PAUSE_S = 0.05
#: MaxTimeMSExpired; Interrupted, by shutdown, by hand, by a change of state; session killed.
_ENDED = frozenset({50, 11600, 11601, 11602, 46841})

logger = logging.getLogger("antipode")


def held_find(collection: str, target: Target) -> dict[str, Any]:
    """A find in *collection*, which need not exist, that the server holds back until *target*.

    MongoDB manual, "Read Concern and afterClusterTime".
    """
    return {
        "find": collection,
        "filter": {"_id": 0},
        "limit": 1,
        "singleBatch": True,
        "readConcern": target.concern,
    }


class Patience:
    """What a server was found not to wait for: it is polled again and again for that."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._refused: set[bool] = set()

    def has(self, target: Target) -> bool:
        """Whether the server may wait for *target*."""
        return (target.term is None) not in self._refused

    def ended(self, target: Target, error: Exception) -> None:
        """A wait for *target* ended with *error*, as the next one will unless it was stopped."""
        if getattr(error, "code", None) not in _ENDED:
            self._refused.add(target.term is None)
            logger.debug("a server refuses to wait: %s", error)


class ServerWait:
    """At most one find with ``afterClusterTime``, in a thread that lasts as long as the find.

    The find is held back for a slice at most. It runs in a session of its own, by which it is
    killed when nobody waits any more.

    Attributes:
        patience: what the server was found not to wait for.
    """

    def __init__(self, client: Any, database: str, collection: str) -> None:
        """Wait through *client* by reads of a collection, which need not exist."""
        self.patience = Patience()
        self._client = client
        self._database = database
        self._collection = collection
        self._thread: threading.Thread | None = None
        self._target: Target | None = None
        self._session: Any = None
        self._ended: socket.socket

    def start(self, target: Target, slice_s: float) -> int:
        """Have the server wait for *target*; a descriptor that becomes readable when it ended."""
        running = self._thread is not None and self._thread.is_alive()
        if not (running and self._serves(target)):
            self.stop()
            return self._begin(target, min(slice_s, SLICE_S))
        return self._ended.fileno()

    def _serves(self, target: Target) -> bool:
        held = self._target
        return (
            held is not None and held.majority == target.majority and held.version <= target.version
        )

    def _begin(self, target: Target, slice_s: float) -> int:
        self._target = target
        self._ended, ending = socket.socketpair()
        self._session = self._client.start_session(causal_consistency=False)
        arguments = target, slice_s, self._session, ending
        self._thread = threading.Thread(
            target=self._run, args=arguments, name="antipode-server-wait", daemon=True
        )
        self._thread.start()
        return self._ended.fileno()

    def _run(self, target: Target, slice_s: float, session: Any, done: socket.socket) -> None:
        command = held_find(self._collection, target)
        try:
            # PyMongo adds the same limit to the command, as maxTimeMS.
            with pymongo_module().timeout(slice_s):
                self._client[self._database].command(command, session=session)
        except refusals() as error:
            self.patience.ended(target, error)
        except link_errors() as error:
            logger.debug("a wait on a server failed; the next poll shows why: %s", error)
        finally:
            done.close()  # The other end becomes readable.

    def stop(self) -> None:
        """End the wait on the server too, and release what it used. Idempotent."""
        thread, self._thread = self._thread, None
        if thread is not None and thread.is_alive():
            self._kill(thread)
            thread.join()
        if self._session is not None:
            self._session.end_session()
            self._session = None
            self._ended.close()

    def _kill(self, thread: threading.Thread) -> None:
        """Kill the find, until it has ended: the first attempt may come before it."""
        while thread.is_alive():
            try:
                with pymongo_module().timeout(SLICE_S):
                    self._client.admin.command("killSessions", [self._session.session_id])
            except (*refusals(), *link_errors()):
                return  # It ends with its slice, or with the connection.
            thread.join(_KILL_PAUSE_S)
