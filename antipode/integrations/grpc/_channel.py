"""Synchronous channels, whose calls carry the lineage and bring the callee's back."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from ._library import grpc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from antipode.integrations._outgoing import Outgoing

    from ._calling import Channel, Method

_UNARY = ("unary_unary", "stream_unary")
_STREAMS = ("unary_stream", "stream_stream")
_OK = grpc.StatusCode.OK


def instrument(channel: Any, known: Channel) -> None:
    """Make the calls of stubs that are made from now on of *channel* carry lineages."""
    for kind in (*_UNARY, *_STREAMS):
        make = _Unary if kind in _UNARY else _Stream
        setattr(channel, kind, _making(getattr(channel, kind), known, make))


def uninstrument(channel: Any) -> None:
    """Undo :func:`instrument` for stubs that are made from now on."""
    for kind in (*_UNARY, *_STREAMS):
        delattr(channel, kind)


def _making(
    original: Callable[..., Any], known: Channel, make: Callable[[Any, Method], Any]
) -> Callable[..., Any]:
    def multi_callable(method: str, *args: Any, **kwargs: Any) -> Any:
        return make(original(method, *args, **kwargs), known.method(method))

    return multi_callable


class _Unary:
    """Calls with one response."""

    def __init__(self, inner: Any, method: Method) -> None:
        self._inner = inner
        self._method = method

    def __call__(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        return self.with_call(request, *args, **kwargs)[0]

    def with_call(  # noqa: PLR0917 - as gRPC's
        self,
        request: Any,
        timeout: float | None = None,
        metadata: Any = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,  # noqa: FBT001 - as gRPC's
        compression: Any = None,
    ) -> Any:
        call, sent = self._method.begin(metadata)
        try:
            response, done = self._inner.with_call(
                request, timeout, sent, credentials, wait_for_ready, compression
            )
        except grpc.RpcError as error:
            self._method.raised(call, error)
            raise
        except (TypeError, ValueError):
            raise  # gRPC refused it before it was sent.
        except BaseException:
            call.failed()
            raise
        trailing = done.trailing_metadata()
        if trailing or call.text:  # Else there is nothing to judge: nobody asked.
            self._method.ended(call, _OK, None, trailing)
        return response, done

    def future(  # noqa: PLR0917 - as gRPC's
        self,
        request: Any,
        timeout: float | None = None,
        metadata: Any = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,  # noqa: FBT001 - as gRPC's
        compression: Any = None,
    ) -> Any:
        call, sent = self._method.begin(metadata)
        future = self._inner.future(
            request, timeout, sent, credentials, wait_for_ready, compression
        )
        return _watched(future, self._method, call)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Stream:
    """Calls with a stream of responses."""

    def __init__(self, inner: Any, method: Method) -> None:
        self._inner = inner
        self._method = method

    def __call__(  # noqa: PLR0917 - as gRPC's
        self,
        request: Any,
        timeout: float | None = None,
        metadata: Any = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,  # noqa: FBT001 - as gRPC's
        compression: Any = None,
    ) -> Any:
        call, sent = self._method.begin(metadata)
        stream = self._inner(request, timeout, sent, credentials, wait_for_ready, compression)
        return _watched(stream, self._method, call)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Ending:
    """The end of a call that outlasts its start: it is judged once, by who sees it first."""

    __slots__ = ("_lock", "_method", "call")

    def __init__(self, method: Method, call: Outgoing) -> None:
        self._method = method
        self._lock = threading.Lock()
        #: The call; None once it is judged.
        self.call: Outgoing | None = call
        call.began()

    def seen(self, inner: Any) -> None:
        """The status of *inner* is there. Who comes second waits until it is judged."""
        with self._lock:
            if self.call is None:
                return
            try:
                self._judge(self.call, inner)
            finally:
                self.call = None  # Not before: who comes second would not wait.

    def left(self, inner: Any) -> None:
        """Nobody holds *inner* any more. For finalisers: nothing here waits for a lock."""
        if self._lock.acquire(blocking=False):
            call, self.call = self.call, None
            self._lock.release()
            if call is not None:
                call.later(lambda: self._judge(call, inner))

    def _judge(self, call: Outgoing, inner: Any) -> None:
        call.finished()
        if inner is None or not inner.done():
            call.failed()
        else:
            self._method.raised(call, inner)


class Watched:
    """A future or a stream of responses whose end is seen before its caller sees it.

    gRPC runs callbacks in a thread of its own, at the same time as it wakes who waits: whoever
    then asked for the lineage could come first.
    """

    __slots__ = ("__weakref__", "_ending", "_inner")

    def __init__(self, inner: Any, ending: Ending) -> None:
        self._inner = inner
        self._ending = ending
        # Weakly: gRPC cancels a call that nobody holds any more.
        known = weakref.ref(inner)
        if not inner.add_callback(lambda: _came(known, ending)):
            ending.seen(inner)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """That of gRPC's own object: instrumentations ask whether it is a future."""
        return type(self._inner)

    def _look(self) -> None:
        if self._ending.call is not None and self._inner.done():
            self._ending.seen(self._inner)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._inner)
        except BaseException:  # The end as well.
            self._look()
            raise

    next = __next__

    def add_done_callback(self, function: Callable[[Any], None]) -> None:
        """As gRPC's, with this object."""
        self._inner.add_done_callback(lambda _: function(self))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return _looking(self, found) if name in _TELLING else found

    def __repr__(self) -> str:
        return repr(self._inner)

    def __del__(self) -> None:
        if self._ending.call is not None:
            self._ending.left(self._inner)


#: What notifies a caller of the end, or makes it come.
_TELLING = frozenset(
    {
        "cancel",
        "cancelled",
        "code",
        "debug_error_string",
        "details",
        "done",
        "exception",
        "is_active",
        "result",
        "running",
        "traceback",
        "trailing_metadata",
    }
)


def _watched(inner: Any, method: Method, call: Outgoing) -> Any:
    if hasattr(inner, "add_callback") and hasattr(inner, "done"):
        return Watched(inner, Ending(method, call))
    call.failed()  # Of no channel of gRPC's own: nothing will report how it ends.
    return inner


def _looking(watched: Watched, method: Callable[..., Any]) -> Callable[..., Any]:
    def look(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        finally:
            watched._look()  # noqa: SLF001 - a method of it, made when it is asked for

    return look


def _came(known: weakref.ref[Any], ending: Ending) -> None:
    ending.seen(known())
