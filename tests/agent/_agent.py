"""The operations, each in a thread of its own or on one event loop."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import json
import os
import threading
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from opentelemetry import context as otel_context

import antipode
import antipode.shim
from antipode import propagation, telemetry
from antipode.integrations._outgoing import forget_services

from . import _scripts, _shims
from ._pure import Pure, Request
from ._values import Unsupported, of_error, of_promise, of_result, promise_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from contextlib import AbstractContextManager
    from types import TracebackType

    from typing_extensions import Self

    from antipode.shim import Cancellable

_BARRIER_OPTIONS = (
    "at",
    "only",
    "exclude",
    "on_unmet",
    "on_unknown",
    "on_incomplete",
    "mode",
    "refresh",
)


class _Nonsense(Exception):  # noqa: N818 - an answer, not a fault
    """The request makes no sense."""


class _Held:
    """An open scope: the context in which its operations run."""

    def __init__(self, outer: contextvars.Context, manager: AbstractContextManager[Any]) -> None:
        self.context = outer.copy()
        self._manager = manager
        self.made = self.context.run(manager.__enter__)

    def close(self) -> None:
        """End it."""
        self.context.run(self._manager.__exit__, None, None, None)


class Agent(Pure):
    """Answers requests on a stream. A context manager; `take` never blocks.

    Args:
        answers: where the answers go.
    """

    def __init__(self, answers: TextIO) -> None:
        self._answers = answers
        self._writing = threading.Lock()
        self._handles = itertools.count(1)
        self._scopes: dict[str, _Held] = {}
        self._shims: dict[str, _shims.OpenShim] = {}
        #: What had been counted when the present test began.
        self._counted: dict[telemetry.Metric, int] = {}
        #: By what each request that was taken and not answered can be cancelled, once it can.
        self._running: dict[int, Callable[[], bool] | None] = {}
        self._cancelled: set[int] = set()
        self._cancelling = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._loop = asyncio.new_event_loop()
        self._looping = threading.Thread(target=self._loop.run_forever, name="agent-loop")
        self._nowhere = contextvars.Context()

    def __enter__(self) -> Self:
        self._looping.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number in list(self._running):
            self._cancel(number)
        with ExitStack() as stack:
            for shim in self._shims.values():
                stack.callback(shim.close)  # Ends who waits at it.
            for scope in self._scopes.values():
                stack.callback(scope.close)
        for thread in list(self._threads):
            thread.join()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._looping.join()
        self._loop.close()

    def take(self, line: str) -> None:
        """Begin what one line asks for."""
        try:
            request: Request = json.loads(line)
            number, op = request["id"], request["op"]
        except (ValueError, KeyError, TypeError) as error:
            self._answer({"id": None, "error": {"code": "agent", "message": f"{error!r}"}})
            return
        does = getattr(self, f"op_{op}", None)
        if does is None:
            self._fail(number, _Nonsense(f"no operation {op!r}"))
            return
        self._running[number] = None
        thread = threading.Thread(target=self._run, args=(number, does, request))
        self._threads.add(thread)
        thread.start()

    def _run(self, number: int, does: Callable[[Request], Any], request: Request) -> None:
        try:
            try:
                context = self._context(request)
            except KeyError:
                raise _Nonsense(f"no open scope {request['scope']!r}") from None
            value = context.run(does, request)
        except BaseException as error:  # noqa: BLE001 - whatever it is goes to who asked
            self._fail(number, error)
        else:
            self._answer({"id": number, "value": value})
        finally:
            with self._cancelling:
                self._running.pop(number, None)
                self._cancelled.discard(number)
            self._threads.discard(threading.current_thread())

    def _context(self, request: Request) -> contextvars.Context:
        name = request.get("scope")
        return (self._nowhere if name is None else self._scopes[name].context).copy()

    def _fail(self, number: int, error: BaseException) -> None:
        found = of_error(error)
        if isinstance(error, (_Nonsense, KeyError)):
            found["code"] = "agent"
        if isinstance(error, Unsupported):
            found["code"] = "unsupported"
        if isinstance(error, asyncio.CancelledError):
            found["code"] = "cancelled"
        self._answer({"id": number, "error": found})

    def _answer(self, found: dict[str, Any]) -> None:
        with self._writing, suppress(BrokenPipeError):
            self._answers.write(json.dumps(found) + "\n")
            self._answers.flush()

    def _await(self, number: int, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run *coroutine* on the loop, in this context; it can be cancelled by its number."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        self._cancellable(number, future.cancel)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _cancellable(self, number: int, cancel: Callable[[], bool]) -> None:
        """From now on *cancel* ends it; at once where that was asked for already."""
        with self._cancelling:
            self._running[number] = cancel
            late = number in self._cancelled
        if late:
            cancel()

    def _cancel(self, number: int) -> bool:
        with self._cancelling:
            if number not in self._running:
                return False
            cancel = self._running[number]
            if cancel is None:
                self._cancelled.add(number)
                return True
        return cancel()

    # Settings

    def op_configure(self, request: Request) -> Any:
        """Change settings; those that were."""
        before = antipode.shim.config()
        antipode.configure(**_scripts.settings_of(request["settings"]))
        return _scripts.of_settings(before)

    def op_statistics(self, _: Request) -> Any:
        """Counts, threads and descriptors."""
        names = (thread.name for thread in threading.enumerate())
        folder = Path("/proc/self/fd")
        return {
            "metrics": [
                [metric.name, metric.datastore, count - self._counted.get(metric, 0)]
                for metric, count in telemetry.metrics().items()
                if count > self._counted.get(metric, 0)
            ],
            "watchers": [name for name in names if name.startswith("antipode-watch")],
            "connections": len(os.listdir(folder)) if folder.is_dir() else 0,  # noqa: PTH208
        }

    def op_reset(self, request: Request) -> Any:
        """The next test begins."""
        left = [*self._scopes, *self._shims]
        if left:
            raise _Nonsense(f"still open: {', '.join(left)}")
        antipode.configure(**_scripts.settings_of(request["settings"]))
        forget_services()
        self._counted = telemetry.metrics()

    # Scopes

    def op_open_scope(self, request: Request) -> Any:
        """A request begins."""
        if "headers" in request:
            return self._hold(_incoming(dict(request["headers"])))
        return self._hold(antipode.scope(request.get("text")))

    def _hold(self, manager: AbstractContextManager[Any]) -> dict[str, Any]:
        handle = f"s{next(self._handles)}"
        self._scopes[handle] = _Held(contextvars.copy_context(), manager)
        return {"scope": handle}

    def op_close_scope(self, request: Request) -> Any:
        """A request ends."""
        self._scopes.pop(request["scope"]).close()

    def op_lineage(self, _: Request) -> Any:
        """What the scope holds."""
        return antipode.shim.encode(antipode.current())

    def op_merge_into(self, request: Request) -> Any:
        """Something more is known."""
        antipode.transfer(antipode.deserialize(request["text"]))

    def op_request_headers(self, request: Request) -> Any:
        """What a request takes along."""
        carrier = dict(request.get("headers", ()))
        propagation.AntipodeBaggagePropagator().inject(carrier)
        return sorted(map(list, carrier.items()))

    def op_response_headers(self, _: Request) -> Any:
        """What an answer takes back."""
        carrier: dict[str, str] = {}
        propagation.inject_response(carrier)
        return sorted(map(list, carrier.items()))

    def op_receive(self, request: Request) -> Any:
        """An answer came."""
        propagation.extract_response(dict(request["headers"]))

    def op_fulfilling(self, request: Request) -> Any:
        """A branch begins that fulfils a promise."""
        opened = self._hold(antipode.fulfilling(request["token"]))
        return {**opened, "promise": of_promise(self._scopes[opened["scope"]].made)}

    # Shims

    def op_open_shim(self, request: Request) -> Any:
        """A shim or an instrumented client of a real store."""
        handle = f"d{next(self._handles)}"
        self._shims[handle] = _shims.open_shim(request["store"], request)
        return {"shim": handle}

    def op_close_shim(self, request: Request) -> Any:
        """It is not needed any more."""
        self._shims.pop(request["shim"]).close()

    def _shim(self, request: Request) -> _shims.OpenShim:
        try:
            return self._shims[request["shim"]]
        except KeyError:
            raise _Nonsense(f"no open shim {request.get('shim')!r}") from None

    def op_write(self, request: Request) -> Any:
        """A write."""
        promise = promise_of(request["fulfils"]) if request.get("fulfils") else None
        return _encoded(
            self._shim(request).write(
                request["key"], request["value"], _lineage(request), fulfils=promise
            )
        )

    def op_delete(self, request: Request) -> Any:
        """A delete."""
        return _encoded(self._shim(request).delete(request["key"], _lineage(request)))

    def op_read(self, request: Request) -> Any:
        """A read."""
        shim, key = self._shim(request), request["key"]
        if request.get("api") == "async":
            value, lineage = self._await(request["id"], shim.read_async(key))
        else:
            value, lineage = shim.read(key)
        return {"value": value, "lineage": _encoded(lineage)}

    def op_rolled_back(self, request: Request) -> Any:
        """A transaction that ends without its write."""
        promise = promise_of(request["fulfils"])
        self._shim(request).rolled_back(request["key"], request["value"], promise)

    def op_wait(self, request: Request) -> Any:
        """Table 2's wait."""
        given = _lineage(request), request["timeout_s"]
        shim = self._shim(request).shim
        if request.get("api") == "async":
            call = shim.wait_async(given[0], timeout=given[1])
            return of_result(self._await(request["id"], call))
        return of_result(shim.wait(given[0], timeout=given[1]))

    # Waiting

    def op_barrier(self, request: Request) -> Any:
        """A barrier, by any of the three ways to call it."""
        options: dict[str, Any] = {**_options(request), "timeout": request["timeout_s"]}
        lineage, number = _lineage(request), request["id"]
        match request.get("api", "sync"):
            case "sync":
                return of_result(antipode.barrier(lineage, **options))
            case "async":
                call = antipode.barrier_async(lineage, **options)
                return of_result(self._await(number, call))
            case "callback":
                return of_result(self._called_back(number, lineage, options))
            case other:
                raise _Nonsense(f"no way {other!r} to call a barrier")

    def _called_back(
        self, number: int, lineage: antipode.Lineage | None, options: dict[str, Any]
    ) -> antipode.BarrierResult:
        ended: list[antipode.BarrierResult] = []
        done = threading.Event()

        def callback(result: antipode.BarrierResult) -> None:
            ended.append(result)
            done.set()

        call: Cancellable = antipode.barrier_callback(callback, lineage, **options)

        def cancel() -> bool:
            call.cancel()
            was_running = not done.is_set()
            done.set()
            return was_running

        self._cancellable(number, cancel)
        done.wait()
        if not ended:
            raise asyncio.CancelledError
        return ended[0]

    def op_check(self, request: Request) -> Any:
        """A check."""
        lineage, options = _lineage(request), _options(request)
        if request.get("api") == "async":
            call = antipode.check_async(lineage, **options)
            return of_result(self._await(request["id"], call))
        return of_result(antipode.check(lineage, **options))

    def op_cancel(self, request: Request) -> Any:
        """Nobody waits for it any more."""
        return self._cancel(request["request"])

    def op_promise(self, request: Request) -> Any:
        """A branch will write."""
        made = antipode.promise(request["datastore"], expires_in_s=request["expires_in_s"])
        return {"promise": of_promise(made), "token": made.token}

    def op_abandon(self, request: Request) -> Any:
        """A branch will not."""
        promise = promise_of(request["promise"])
        if request.get("api") == "async":
            return self._await(request["id"], antipode.abandon_async(promise))
        return antipode.abandon(promise)


@contextmanager
def _incoming(headers: dict[str, str]) -> Generator[None]:
    """A request that came in with *headers*."""
    token = otel_context.attach(propagation.AntipodeBaggagePropagator().extract(headers))
    try:
        yield
    finally:
        antipode.stop()
        otel_context.detach(token)


def _lineage(request: Request) -> antipode.Lineage | None:
    text = request.get("lineage")
    return None if text is None else antipode.deserialize(text)


def _encoded(lineage: antipode.Lineage | None) -> str | None:
    return None if lineage is None else antipode.shim.encode(lineage)


def _options(request: Request) -> dict[str, Any]:
    return {name: request[name] for name in _BARRIER_OPTIONS if name in request}
