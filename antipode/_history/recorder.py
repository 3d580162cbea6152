"""Records what the Table 2 shims of this process write and read, and what travels between.

docs/spec/history.md says what the lines mean. A version is an id that the recorder stores with the
value, as a note in its lineage; a message is an id that travels with the lineage of its request.
"""

from __future__ import annotations

import atexit
import os
import re
import secrets
import sys
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from antipode._lineage.lineage import without_notes
from antipode._request.context import scope_in
from antipode._runtime import observers
from antipode._runtime.call_site import caller

from .part import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from antipode._lineage.lineage import Lineage
    from antipode._runtime.observers import Notes, Request

_NOTE = re.compile(r"0([hmv])([0-9a-f]{16})")
_REQUEST, _MESSAGE, _VERSION = "h", "m", "v"
#: Counts of reads whose values somebody wrote without a note.
_UNKNOWN_WRITERS = frozenset({"companion_absent", "foreign", "unreadable"})
_NOTHING: frozenset[str] = frozenset()


def _named(kind: str, items: frozenset[str]) -> list[str]:
    """The ids of the notes of this *kind* among *items*, in an order that is always the same."""
    found = map(_NOTE.fullmatch, items)
    return sorted(match[2] for match in found if match and match[1] == kind)


class _Call:
    """A write or a read that runs.

    Attributes:
        version: the id that a write stores.
        found: the ids that a read found.
        unknown: whether it found what has none.
    """

    __slots__ = ("found", "unknown", "version")

    def __init__(self, version: str) -> None:
        self.version = version
        self.found: set[str] = set()
        self.unknown = False

    def read(self, value: object) -> str | None:
        """The version of what was read; of what nobody can know one that nobody wrote."""
        if len(self.found) == 1 and not self.unknown:
            (version,) = self.found
            return version
        if value is None and not self.found and not self.unknown:
            return None
        return f"unknown {secrets.token_hex(8)}"


class _Thread:
    """Operations of one request that follow each other.

    Attributes:
        name: of the process that they are in the history.
        done: how many it has.
        follows: how many of each other thread's come before its next one.
        busy: whether one runs.
    """

    __slots__ = ("busy", "done", "follows", "name")

    def __init__(self, name: str) -> None:
        self.name, self.done, self.busy = name, 0, True
        self.follows: dict[str, int] = {}


class _Request:
    """What is known of one request in this process.

    Attributes:
        recorder: the name of the process.
        lineage: its id, the same in every process.
        threads: what ran at the same time is in different ones.
        received: the messages that it received.
        sent: how many operations it had when it last sent something, and the id of that.
    """

    __slots__ = ("lineage", "received", "recorder", "sent", "threads")

    def __init__(self, recorder: str) -> None:
        self.recorder = recorder
        self.lineage = ""
        self.threads: list[_Thread] = []
        self.received: set[str] = set()
        self.sent: tuple[int, str] = (0, "")


class HistoryRecorder:
    """The recorder of this process. Thread-safe."""

    def __init__(self, directory: str, inner: Notes | None) -> None:
        """Write into *directory*; *inner* is who else sends notes."""
        self._part = Part(directory)
        self._inner = inner
        self._lock = threading.Lock()
        self._call: ContextVar[_Call | None] = ContextVar("antipode_history_call", default=None)
        self._requests = 0

    @contextmanager
    def operation(
        self, kind: str, datastore: str, keyspace: str, key: object, *, vanishes: bool
    ) -> Iterator[Callable[[object], None]]:
        """A block that is one ``write``, ``delete`` or ``read``; it hands over what came of it.

        One that raises is left out: whether it was done, nobody knows.
        """
        request = scope_in()
        if request is not None:
            _ = request.known  # What came is received first.
        about = {"datastore": datastore, "key": _text(keyspace, key)}
        call, site = _Call(secrets.token_hex(8)), _site(caller())
        with self._lock:
            known, thread = self._begin(request)
            if vanishes:
                self._part.put({"kind": "vanishes", **about})
        token = self._call.set(call)

        def ended(found: Any) -> None:  # noqa: ANN401 - whatever the method returns
            read = kind == "read"
            version = call.read(found[0]) if read else call.version
            line = {"version": version, "site": site}
            with self._lock:
                self._put("read" if read else "write", known, thread, **about, **line)

        try:
            yield ended
        finally:
            self._call.reset(token)
            with self._lock:
                thread.busy = False

    def label(self) -> frozenset[str]:
        """The note that names the version which is being written; empty outside of a write."""
        call = self._call.get()
        return _NOTHING if call is None else frozenset([f"0{_VERSION}{call.version}"])

    def found(self, notes: frozenset[str]) -> None:
        """A lineage with these *notes* was found stored with a value that is being read."""
        if (call := self._call.get()) is not None:
            ids = _named(_VERSION, notes)
            call.found.update(ids)
            call.unknown |= len(ids) != 1

    def counted(self, name: str) -> None:
        """A value that is being read may have been written without a note."""
        if name in _UNKNOWN_WRITERS and (call := self._call.get()) is not None:
            call.unknown = True

    def absorb(self, request: Request, lineage: Lineage) -> Lineage:
        """*lineage* without the notes in it: *request* receives the messages that they name."""
        if not lineage.unknown:
            return lineage
        with self._lock:
            known = self._known(request)
            if not known.lineage:
                known.lineage = min(_named(_REQUEST, lineage.unknown), default="")
            new = set(_named(_MESSAGE, lineage.unknown)) - known.received
            if new:
                thread = self._follow(known)
                for message in sorted(new):
                    self._put("receive", known, thread, message=message)
                thread.busy = False
                known.received |= new
        if self._inner is not None:
            lineage = self._inner.absorb(request, lineage)
        return without_notes(lineage)

    def notes(self, request: Request) -> frozenset[str]:
        """The items that travel with the lineage of *request*: its id, and the message it is."""
        others = _NOTHING if self._inner is None else self._inner.notes(request)
        with self._lock:
            known = self._known(request)
            items = {f"0{_REQUEST}{self._lineage(known)}"}
            done = sum(thread.done for thread in known.threads)
            if done > known.sent[0]:
                thread, message = self._follow(known), secrets.token_hex(8)
                self._put("send", known, thread, message=message)
                thread.busy = False
                known.sent = sum(each.done for each in known.threads), message
            if known.sent[1]:
                items.add(f"0{_MESSAGE}{known.sent[1]}")
        return others | items

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._part.close()

    def after_fork(self) -> None:
        """Begin a file of the child's own."""
        self._lock = threading.Lock()
        self._part.after_fork()
        if (processes := sys.modules.get("multiprocessing.util")) is not None:
            # Its children exit without what atexit knows.
            processes.register_after_fork(self, _closed_at_the_end)

    def _known(self, request: Request) -> _Request:
        """What is known of *request* in this process; under the lock."""
        held = request.recorded
        if not isinstance(held, _Request) or held.recorder != self._part.name:
            new = _Request(self._part.name)
            if isinstance(held, _Request):  # Of the process that this one was forked from.
                new.lineage = held.lineage
            held = request.recorded = new
        return held

    def _lineage(self, known: _Request) -> str:
        if not known.lineage:
            known.lineage = secrets.token_hex(8)
        return known.lineage

    def _begin(self, request: Request | None) -> tuple[_Request, _Thread]:
        """Where an operation of *request* belongs; outside of one it is alone; under the lock."""
        known = _Request(self._part.name) if request is None else self._known(request)
        if request is not None:
            self._lineage(known)
        return known, self._follow(known)

    def _follow(self, known: _Request) -> _Thread:
        """A thread of the request that is free, and comes after all that is done; it is busy now.

        What is done is in the lineage of the request, whichever of its threads did it.
        """
        thread = next((each for each in known.threads if not each.busy), None)
        if thread is None:
            self._requests += 1
            thread = _Thread(f"{self._part.name}.{self._requests}")
            known.threads.append(thread)
        thread.busy = True
        for other in known.threads:
            if other is not thread and other.done > thread.follows.get(other.name, 0):
                message = secrets.token_hex(8)
                self._put("send", known, other, message=message)
                self._put("receive", known, thread, message=message)
                thread.follows[other.name] = other.done
        return thread

    def _put(self, kind: str, known: _Request, thread: _Thread, **about: object) -> None:
        thread.done += 1
        lineage = known.lineage or None
        self._part.put({"kind": kind, "process": thread.name, "lineage": lineage, **about})


def _text(keyspace: str, key: object) -> str:
    """*key* as a history has it: never empty."""
    text = key.decode("utf-8", "backslashreplace") if isinstance(key, bytes) else str(key)
    return (f"{keyspace}/{text}" if keyspace else text) or "(empty)"


def _site(frame: FrameType) -> dict[str, object]:
    code = frame.f_code
    return {"file": code.co_filename, "line": frame.f_lineno, "function": code.co_name}


def _closed_at_the_end(recorder: HistoryRecorder) -> None:
    from multiprocessing.util import Finalize

    Finalize(None, recorder.close, exitpriority=0)


def _after_fork() -> None:
    if isinstance(observers.history, HistoryRecorder):
        observers.history.after_fork()


def _at_exit() -> None:
    if observers.history is not None:
        observers.history.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
