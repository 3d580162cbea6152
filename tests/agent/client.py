"""Speaks to an agent; stands in for the module `antipode` and for shims in the contract suite."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import json
import subprocess
import threading
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import antipode
import antipode.shim
from antipode import Lineage, Promise, telemetry

from ._values import of_promise, promise_of, result_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Self

#: Seconds in which an agent that was told to end has ended.
END_S = 30.0


class StoreError(Exception):
    """What the agent's store or its client raised, which each language calls by another name."""


class Unsupported(Exception):  # noqa: N818 - a reason to skip
    """The agent's language does not have it."""


class AgentFailed(Exception):  # noqa: N818 - a fault of the agent or of the test
    """The agent did not understand, or is gone."""


class AgentProcess:
    """An agent that runs. A context manager; thread-safe.

    Args:
        command: what starts it.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._reading = threading.Thread(target=self._read, name="agent-answers", daemon=True)
        self._reading.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AgentFailed(f"the agent did not end within {END_S} s") from None
        finally:
            self._reading.join()
            assert self._process.stdout is not None
            self._process.stdout.close()
        if kind is None and self._process.returncode != 0:
            # As a sanitizer has it that found something in the last moment.
            raise AgentFailed(f"the agent ended with {self._process.returncode}")

    def ask(self, op: str, **arguments: object) -> Any:
        """The value of an operation.

        Raises:
            AntipodeError: the library's error, as in this language.
            StoreError: the store's.
            Unsupported: the agent's language does not have it.
            AgentFailed: the request makes no sense, or the agent is gone.
        """
        return self.begin(op, **arguments)[1].result()

    def begin(self, op: str, **arguments: object) -> tuple[int, Future[Any]]:
        """Ask without waiting: the request's number, and what will have its value."""
        future: Future[Any] = Future()
        with self._lock:
            number = next(self._numbers)
            self._waiting[number] = future
            given = {name: value for name, value in arguments.items() if value is not None}
            line = json.dumps({"id": number, "op": op, **given})
            assert self._process.stdin is not None
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        return number, future

    def idle(self) -> bool:
        """Whether each request has been answered."""
        return not self._waiting

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            future = self._waiting.pop(answer["id"], None)
            if future is None or not future.set_running_or_notify_cancel():
                continue  # Nobody waits for it.
            if "error" in answer:
                future.set_exception(_error_of(answer["error"]))
            else:
                future.set_result(answer["value"])
        for future in filter(Future.set_running_or_notify_cancel, self._waiting.values()):
            future.set_exception(AgentFailed("the agent has ended"))


def _error_of(found: Mapping[str, Any]) -> BaseException:
    """The error of this language that *found* stands for."""
    code, message = found["code"], found["message"]
    others: dict[str, BaseException] = {
        "store": StoreError(f"{found.get('type', '')}: {message}"),
        "cancelled": CancelledError(),
        "unsupported": Unsupported(message),
    }
    if "offset" in found:
        return antipode.LineageDecodeError(code, message, offset=found["offset"])
    for known in _subclasses(antipode.AntipodeError):
        if known.code == code:
            return known(message, *([result_of(found["result"])] if "result" in found else []))
    return others.get(code) or AgentFailed(f"{code}: {message}")


def _subclasses(of: type[antipode.AntipodeError]) -> Iterator[type[antipode.AntipodeError]]:
    for each in of.__subclasses__():
        yield each
        yield from _subclasses(each)


class RemoteScope:
    """A scope that is open in an agent."""

    def __init__(self, agent: AgentProcess, handle: str) -> None:
        self._agent = agent
        self.handle = handle
        self._last: Lineage | None = None

    @property
    def lineage(self) -> Lineage:
        """What it holds, or held when it was closed."""
        return self._asked() if self._last is None else self._last

    def close(self) -> None:
        """Close it, and remember what it held."""
        self._last = self._asked()
        self._agent.ask("close_scope", scope=self.handle)

    def _asked(self) -> Lineage:
        return antipode.deserialize(self._agent.ask("lineage", scope=self.handle))


class RemoteAntipode:
    """What the contract suite calls of the module `antipode`, done by an agent."""

    def __init__(self, agent: AgentProcess) -> None:
        self._agent = agent
        self._scope: contextvars.ContextVar[RemoteScope | None] = contextvars.ContextVar(
            "agent-scope", default=None
        )
        self.telemetry = self
        self.shim = self

    def ask(self, op: str, **arguments: object) -> Any:
        """The value of an operation in the current scope."""
        return self._agent.ask(op, scope=self._handle(), **arguments)

    def _handle(self) -> str | None:
        held = self._scope.get()
        return None if held is None else held.handle

    async def ask_async(self, op: str, **arguments: object) -> Any:
        """The same without blocking the loop; cancelling cancels it there."""
        number, future = self._agent.begin(op, scope=self._handle(), **arguments)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self._agent.ask("cancel", request=number)
            raise

    @contextmanager
    def _within(self, found: dict[str, Any]) -> Iterator[RemoteScope]:
        held = RemoteScope(self._agent, found["scope"])
        token = self._scope.set(held)
        try:
            yield held
        finally:
            self._scope.reset(token)
            held.close()

    @contextmanager
    def scope(self, lineage: Lineage | None = None) -> Iterator[RemoteScope]:
        """As `antipode.scope`."""
        text = None if lineage is None else antipode.shim.encode(lineage)
        with self._within(self._agent.ask("open_scope", text=text)) as held:
            yield held

    @contextmanager
    def request(self, headers: Sequence[Sequence[str]]) -> Iterator[RemoteScope]:
        """A request that came in with *headers*, until it has been answered."""
        with self._within(self._agent.ask("open_scope", headers=headers)) as held:
            yield held

    @contextmanager
    def fulfilling(self, token: str) -> Iterator[Promise]:
        """As `antipode.fulfilling`."""
        found = self.ask("fulfilling", token=token)
        with self._within(found):
            yield promise_of(found["promise"])

    def current(self) -> Lineage:
        """As `antipode.current`."""
        return antipode.deserialize(self.ask("lineage"))

    def barrier(self, lineage: Lineage | None = None, **options: Any) -> antipode.BarrierResult:
        """As `antipode.barrier`."""
        return result_of(self.ask("barrier", **_barrier(lineage, options, "sync")))

    async def barrier_async(
        self, lineage: Lineage | None = None, **options: Any
    ) -> antipode.BarrierResult:
        """As `antipode.barrier_async`."""
        return result_of(await self.ask_async("barrier", **_barrier(lineage, options, "async")))

    def barrier_callback(
        self,
        callback: Callable[[antipode.BarrierResult], object],
        lineage: Lineage | None = None,
        **options: Any,
    ) -> RemoteCall:
        """As `antipode.barrier_callback`."""
        given = _barrier(lineage, options, "callback")
        number, future = self._agent.begin("barrier", scope=self._handle(), **given)

        def done(ended: Future[Any]) -> None:
            if ended.exception() is None:
                callback(result_of(ended.result()))

        future.add_done_callback(done)
        return RemoteCall(self._agent, number)

    def check(self, lineage: Lineage | None = None, **options: Any) -> antipode.BarrierResult:
        """As `antipode.check`."""
        return result_of(self.ask("check", **_call(lineage, options, "sync")))

    async def check_async(
        self, lineage: Lineage | None = None, **options: Any
    ) -> antipode.BarrierResult:
        """As `antipode.check_async`."""
        return result_of(await self.ask_async("check", **_call(lineage, options, "async")))

    def promise(self, datastore: str, *, expires_in_s: float) -> Promise:
        """As `antipode.promise`."""
        found = self.ask("promise", datastore=datastore, expires_in_s=expires_in_s)
        return promise_of(found["promise"])

    def abandon(self, promise: Promise | str) -> bool:
        """As `antipode.abandon`."""
        return bool(self.ask("abandon", **_promised(promise)))

    async def abandon_async(self, promise: Promise | str) -> bool:
        """As `antipode.abandon_async`."""
        return bool(await self.ask_async("abandon", api="async", **_promised(promise)))

    def configure(self, **settings: Any) -> None:
        """As `antipode.configure`."""
        seconds = {f"{name}_s": settings.pop(name) for name in _SECONDS & settings.keys()}
        self.ask("configure", settings={**_json(settings), **seconds})

    def config(self) -> Any:
        """As `antipode.shim.config`."""
        return _Settings(self.ask("configure", settings={}))

    def metrics(self) -> dict[telemetry.Metric, int]:
        """As `antipode.telemetry.metrics`."""
        found = self._agent.ask("statistics")["metrics"]
        return {telemetry.Metric(name, datastore): count for name, datastore, count in found}


#: Settings that are numbers of seconds.
_SECONDS = frozenset({"auto_timeout", "max_timeout"})


class _Settings:
    def __init__(self, found: Mapping[str, Any]) -> None:
        self.__dict__.update(found)


class RemoteCall:
    """A barrier with a callback that can be cancelled."""

    def __init__(self, agent: AgentProcess, number: int) -> None:
        self._agent = agent
        self._number = number

    def cancel(self) -> None:
        """As that of `antipode.barrier_callback`."""
        self._agent.ask("cancel", request=self._number)


class RemoteShim:
    """A shim that is open in an agent, with the calls of Table 2.

    Args:
        remote: through which it is asked, in the current scope.
        store: which store it is of.
        datastore: its name.
        server: where it is, as the lab describes it.
        options: what else opens it.
    """

    def __init__(
        self,
        remote: RemoteAntipode,
        store: str,
        datastore: str,
        server: Mapping[str, Any],
        **options: object,
    ) -> None:
        self.datastore = datastore
        self._remote = remote
        given = {"store": store, "datastore": datastore, "server": dict(server), **options}
        self._handle = remote.ask("open_shim", **given)["shim"]
        self._open = True

    def write(
        self,
        key: str,
        value: bytes,
        lineage: Lineage | None = None,
        *,
        fulfils: Promise | None = None,
    ) -> Lineage:
        """As Table 2's."""
        promise = None if fulfils is None else of_promise(fulfils)
        given = {"key": key, "value": value.decode(), "lineage": _text(lineage)}
        return _lineage(self._ask("write", **given, fulfils=promise))

    def delete(self, key: str, lineage: Lineage | None = None) -> Lineage:
        """As Table 2's."""
        return _lineage(self._ask("delete", key=key, lineage=_text(lineage)))

    def read(self, key: str) -> tuple[bytes | None, Lineage]:
        """As Table 2's."""
        return _read(self._ask("read", key=key))

    async def read_async(self, key: str) -> tuple[bytes | None, Lineage]:
        """As Table 2's."""
        found = await self._remote.ask_async("read", shim=self._handle, key=key, api="async")
        return _read(found)

    def rolled_back(self, key: str, value: bytes, promise: Promise) -> None:
        """In a transaction that is rolled back."""
        self._ask("rolled_back", key=key, value=value.decode(), fulfils=of_promise(promise))

    def wait(self, lineage: Lineage | None = None, *, timeout: float) -> antipode.BarrierResult:
        """As Table 2's."""
        return result_of(self._ask("wait", lineage=_text(lineage), timeout_s=timeout))

    async def wait_async(
        self, lineage: Lineage | None = None, *, timeout: float
    ) -> antipode.BarrierResult:
        """As Table 2's."""
        given = {"lineage": _text(lineage), "timeout_s": timeout, "api": "async"}
        return result_of(await self._remote.ask_async("wait", shim=self._handle, **given))

    def close(self) -> None:
        """Close it there. Idempotent."""
        if self._open:
            self._open = False
            self._ask("close_shim")

    def _ask(self, op: str, **arguments: object) -> Any:
        return self._remote.ask(op, shim=self._handle, **arguments)


def _read(found: Mapping[str, Any]) -> tuple[bytes | None, Lineage]:
    value = found["value"]
    return None if value is None else value.encode(), _lineage(found["lineage"])


def _lineage(text: str | None) -> Lineage:
    """What a call found or wrote; empty for a client, which does not say."""
    return Lineage() if text is None else antipode.deserialize(text)


def _text(lineage: Lineage | None) -> str | None:
    return None if lineage is None else antipode.shim.encode(lineage)


def _call(lineage: Lineage | None, options: dict[str, Any], api: str) -> dict[str, Any]:
    return {**_json(options), "lineage": _text(lineage), "api": api}


def _barrier(lineage: Lineage | None, options: dict[str, Any], api: str) -> dict[str, Any]:
    more = dict(options)
    return _call(lineage, {**more, "timeout_s": more.pop("timeout")}, api)


def _promised(promise: Promise | str) -> dict[str, Any]:
    if isinstance(promise, str):
        promise = Promise.parse(promise)
    return {"promise": of_promise(promise)}


def _json(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options as JSON has them: sets as lists, paths as texts."""
    return {
        name: sorted(value)
        if isinstance(value, (set, frozenset))
        else value
        if isinstance(value, (str, int, float, list, tuple, type(None)))
        else str(value)
        for name, value in given.items()
        if name != "timeout"
    }
