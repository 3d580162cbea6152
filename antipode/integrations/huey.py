"""huey: a task has a scope of its own, from its message until its consumer is done with it.

The lineage of who enqueues a task stands after the pickled message, where ``pickle`` does not read:
consumers without this library, or of an older version, see the message that they always saw.
Works with every ``Huey`` and storage, whether it was made before or after, whose serializer is
huey's or calls its.
"""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType
from typing import TYPE_CHECKING, Any

from antipode._runtime.metrics import log_once
from antipode._runtime.switch import switchable

from ._jobs import Jobs, text_of
from ._method import Method, Methods

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["instrument", "uninstrument"]

#: What the bytes of a message with a lineage end with, after the lineage and its length; those of
#: another one end with the full stop of ``pickle``.
_END = b"antipode"
_LENGTH_BYTES = 4


def __dir__() -> list[str]:
    return __all__


@switchable
def instrument() -> None:
    """Give every task that is enqueued the lineage, and a scope where it is executed. Idempotent.

    For all queues of the process. Call it in what enqueues and in consumers.

    Raises:
        ConfigurationError: huey is not installed.
    """
    _methods.wrap()


def uninstrument() -> None:
    """Undo :func:`instrument`. Idempotent; tasks that are executed now end in their scopes."""
    _methods.unwrap()


def is_instrumented() -> bool:
    """Whether :func:`instrument` is in force."""
    return _methods.active


def _found() -> list[Method]:
    """The methods of huey through which every task goes."""
    from huey.api import Huey, Result
    from huey.serializer import Serializer

    return [
        Method(Huey, "serialize_task", _stored),
        Method(Huey, "deserialize_task", _came),
        Method(Huey, "execute", _executed),
        Method(Huey, "_check_chord", _left_for_chord),
        Method(Result, "reschedule", _rescheduled),
        Method(Serializer, "_serialize", _pickled),
        Method(Serializer, "_deserialize", _unpickled),
    ]


class _Call:
    """What huey does for one task: what its serializer is to write, and what it has read."""

    def __init__(self, text: str | None = None) -> None:
        #: What to put after what is pickled; None for nothing.
        self.text = text
        self.written = False
        #: The texts after what was unpickled.
        self.read: list[str] = []


class _Chord(_Call):
    """The end of a member of a chord, whose result says what it depends on.

    The last of them reads all results, and enqueues what follows.
    """

    def __init__(self, text: str | None, config: Any) -> None:
        super().__init__(text)
        self._config = config

    def texts_for(self, task: Any) -> list[str]:
        """What *task* depends on besides, where it follows the chord: what the members do."""
        if task is not self._config.callback:
            return []
        if len(self.read) < self._config.size:  # Older members, or results that are gone.
            _jobs.note_doubt()
            return [*self.read, _jobs.unknown]
        return self.read


_call: ContextVar[_Call | None] = ContextVar("antipode-huey-call", default=None)
_chord: ContextVar[_Chord | None] = ContextVar("antipode-huey-chord", default=None)
#: The task that is enqueued anew as another one.
_before: ContextVar[Any] = ContextVar("antipode-huey-before", default=None)
#: The attribute of a task that has the text with which it was stored.
_STORED = "_antipode_stored"


@contextmanager
def _within(call: _Call) -> Generator[None]:
    token = _call.set(call)
    try:
        yield
    finally:
        _call.reset(token)


def _stored(call: Callable[..., Any], _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A task is about to be put into the queue or the schedule: as bytes."""
    task = args[0] if args else kwargs["task"]
    if not _jobs.is_performed(task) and _jobs.came(task) is None:
        _jobs.sending(task)
    if _jobs.was_performed(task):  # The application enqueues again what the consumer gave up.
        _jobs.lost(task)
    chord, before = _chord.get(), _before.get()
    more = [] if chord is None else chord.texts_for(task)
    held = _Call(_jobs.leaving(task, more if before is None else [*more, before]))
    with _within(held):
        found = call(*args, **kwargs)
    setattr(task, _STORED, held.text)
    if held.text is not None and not held.written:
        message = "tasks of huey carry no lineage: the serializer does not call huey's own"
        log_once("serializer_without_lineage", "huey", "", message)
    return found


def _came(call: Callable[..., Any], _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A task is read from the queue or the schedule."""
    held = _Call()
    with _within(held):
        task = call(*args, **kwargs)
    _jobs.comes(task, held.read[0] if held.read else None)
    return task


def _executed(
    call: Callable[..., Any], huey: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A consumer executes a task, and enqueues what comes after it."""
    if huey.immediate:  # As a function that is called.
        return call(*args, **kwargs)
    task = args[0] if args else kwargs["task"]
    came = _jobs.came(task)
    with _jobs.performing(task, [] if came is None else [came]):
        return call(*args, **kwargs)


def _left_for_chord(
    call: Callable[..., Any], _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A member of a chord ended: it stores its result for what follows, which the last enqueues."""
    about = args[0] if args else next(iter(kwargs.values()))
    chord = _Chord(_jobs.now(), getattr(about, "chord_config", about))
    token = _chord.set(chord)
    try:
        with _within(chord):
            return call(*args, **kwargs)
    finally:
        _chord.reset(token)


def _rescheduled(
    call: Callable[..., Any], result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A task is revoked, and another one enqueued in its place."""
    token = _before.set(getattr(result.task, _STORED, None))
    try:
        return call(*args, **kwargs)
    finally:
        _before.reset(token)


def _pickled(
    call: Callable[..., bytes], _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bytes:
    """What is stored is pickled; it may be signed and compressed then."""
    found, held = call(*args, **kwargs), _call.get()
    if held is None or held.text is None or held.written:
        return found
    held.written = True
    text = held.text.encode("ascii")
    return found + text + len(text).to_bytes(_LENGTH_BYTES, "big") + _END


def _unpickled(
    call: Callable[..., Any], _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What is stored is unpickled, which reads no further than what was pickled."""
    data, held = args[0] if args else kwargs["data"], _call.get()
    if held is not None and data.endswith(_END):
        end = len(data) - len(_END) - _LENGTH_BYTES
        length = int.from_bytes(data[end : end + _LENGTH_BYTES], "big")
        held.read.append(text_of(data[max(end - length, 0) : end]))
    return call(*args, **kwargs)


def _code_of(task: Any) -> CodeType | None:
    """The code of the function of *task*; None where it is no function."""
    function: Any = inspect.getclosurevars(type(task).execute).nonlocals.get("func")
    code = getattr(inspect.unwrap(function), "__code__", None) if function is not None else None
    return code if isinstance(code, CodeType) else None


def _named(task: Any) -> str:
    """What a dry run calls the function of *task*."""
    return f"the task {type(task).__module__}.{task.name}"


_jobs = Jobs("huey", _named, _code_of)
_methods = Methods("huey", "huey", _found)
