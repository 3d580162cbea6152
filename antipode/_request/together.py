"""``together()``: calls of several requests that run as one."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast, overload

from antipode._lineage.errors import ConfigurationError

from .context import scope_in
from .shared_work import Caller, SharedWork, gained_by

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Sequence

    from antipode._lineage.lineage import Lineage

    from .gaining import Gaining

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
#: The functions of which a run is going on in this context: a call in it is a part of that run.
_running: ContextVar[frozenset[object]] = ContextVar("antipode-together", default=frozenset())


class _Decorator(Protocol):
    """What makes a function of one item of a function of many."""

    @overload
    def __call__(
        self, work: Callable[[list[ItemT]], Coroutine[Any, Any, Sequence[ResultT]]], /
    ) -> Callable[[ItemT], Coroutine[Any, Any, ResultT]]: ...

    @overload
    def __call__(
        self, work: Callable[[list[ItemT]], Sequence[ResultT]], /
    ) -> Callable[[ItemT], ResultT]: ...


@overload
def together(
    work: Callable[[list[ItemT]], Coroutine[Any, Any, Sequence[ResultT]]],
    /,
    *,
    key: Callable[[ItemT], Hashable] | None = None,
) -> Callable[[ItemT], Coroutine[Any, Any, ResultT]]: ...


@overload
def together(
    work: Callable[[list[ItemT]], Sequence[ResultT]],
    /,
    *,
    key: Callable[[ItemT], Hashable] | None = None,
) -> Callable[[ItemT], ResultT]: ...


@overload
def together(*, key: Callable[[Any], Hashable] | None = None) -> _Decorator: ...


def together(
    work: Callable[[list[Any]], Any] | None = None,
    /,
    *,
    key: Callable[[Any], Hashable] | None = None,
) -> Any:
    """Make of *work*, a function of a list of items, one of an item, whose calls run together.

    For what several requests share: a single flight, a lock against stampedes, a write buffer::

        @antipode.together
        async def stock(skus: list[str]) -> list[int]: ...


        left = await stock("sku-7")

    While *work* runs, calls wait for the next run, which is for all of them: no call gets what
    began before it was made. Each run has a scope of its own, which depends on what its callers
    depend on. Each caller's scope then depends on what *work* added, and on nothing of the others.

    A read or barrier in *work* that fails for want of what some callers depend on raises for
    these, each with what it brought itself, and *work* runs again for the others, unless it has
    written. Any other error is every caller's. An exception among the results is raised for the
    caller of its item.

    Args:
        work: takes the items of the callers, in the order of their calls, equal ones too, and
            returns a result for each, in their order. Of a coroutine function, callers share an
            event loop; of another one, they are threads, of which one runs it.
        key: of an item: calls run together where it is equal, such as of one tenant. None: all do.

    Raises:
        ConfigurationError: *work* is a generator function, or nothing that can be called.
    """
    if work is None:
        return functools.partial(together, key=key)
    if not callable(work) or inspect.isgeneratorfunction(work) or inspect.isasyncgenfunction(work):
        msg = f"together() takes a function that returns a list, not {work!r}"
        raise ConfigurationError(msg)
    if inspect.iscoroutinefunction(work) or inspect.iscoroutinefunction(type(work).__call__):
        return _TaskCalls(work, key).decorated()
    return _ThreadCalls(work, key).decorated()


class _Call(Generic[ItemT, ResultT]):
    """One call: its item, who made it, and what came of it."""

    def __init__(self, item: ItemT) -> None:
        self.item = item
        self.caller = Caller(scope_in())
        self.gained: Lineage | None = None
        self.result: Any = None
        self.error: BaseException | None = None

    def answer(self) -> ResultT:
        """Its result, once the caller depends on what the work added."""
        if self.gained is not None:
            self.caller.take(self.gained)
        if self.error is not None:
            raise self.error
        return cast("ResultT", self.result)


class _Run(Generic[ItemT, ResultT]):
    """Calls that run as one, until each has its result or its error."""

    def __init__(self, calls: Sequence[_Call[ItemT, ResultT]]) -> None:
        self._by_caller = {each.caller: each for each in calls}
        self.work = SharedWork(self._by_caller)

    @property
    def items(self) -> list[ItemT]:
        """Of those for whom it runs now."""
        return [self._by_caller[each].item for each in self.work.callers]

    def succeeded(self, held: Gaining, results: list[ResultT]) -> None:
        """Each of those for whom it ran has a result."""
        gained, callers = gained_by(held), self.work.callers
        if len(results) != len(callers):
            msg = f"the work returned {len(results)} results for {len(callers)} items"
            self._ended(gained, ValueError(msg))
            return
        for caller, result in zip(callers, results, strict=True):
            call = self._by_caller[caller]
            call.gained = gained
            if isinstance(result, BaseException):
                call.error = result
            else:
                call.result = result

    def failed(self, held: Gaining, error: BaseException) -> bool:
        """It raised *error*; whether it is to run again, for those who did not bring about that."""
        unmet = self.work.unmet(held, error) if isinstance(error, Exception) else {}
        for caller, own in unmet.items():
            self._by_caller[caller].error = own
        if unmet:
            return bool(self.work.callers)
        self._ended(gained_by(held), error)
        return False

    def _ended(self, gained: Lineage, error: BaseException) -> None:
        for caller in self.work.callers:
            self._by_caller[caller].gained = gained
            self._by_caller[caller].error = error


class _Calls(Generic[ItemT, ResultT]):
    """What a decorated function is made of."""

    def __init__(
        self, work: Callable[[list[ItemT]], Any], key: Callable[[ItemT], Hashable] | None
    ) -> None:
        self.work, self._key = work, key

    def group(self, call: _Call[ItemT, ResultT]) -> tuple[Hashable, ...]:
        """Calls of equal groups run together: those that fulfil promises only with each other."""
        return None if self._key is None else self._key(call.item), call.caller.own

    @property
    def nested(self) -> bool:
        """Whether this is called within a run of its own, for which it must not wait."""
        return self in _running.get()


class _TaskCalls(_Calls[ItemT, ResultT]):
    """Of a coroutine function: each run is a task of the event loop of its callers."""

    def __init__(
        self,
        work: Callable[[list[ItemT]], Coroutine[Any, Any, Sequence[ResultT]]],
        key: Callable[[ItemT], Hashable] | None,
    ) -> None:
        super().__init__(work, key)
        #: The calls that wait for the next run, by loop and group; a group is there while it runs.
        self._waiting: dict[tuple[Hashable, ...], list[_Awaited[ItemT, ResultT]]] = {}

    def decorated(self) -> Callable[[ItemT], Coroutine[Any, Any, ResultT]]:
        """The function of one item."""

        @functools.wraps(self.work)
        async def call(item: ItemT) -> ResultT:
            made: _Awaited[ItemT, ResultT] = _Awaited(item)
            if self.nested:
                await self._run([made])
                return made.answer()
            group = (made.done.get_loop(), *self.group(made))
            if group in self._waiting:
                self._waiting[group].append(made)
            else:
                self._waiting[group] = [made]
                self._begin(group)
            await made.done
            return made.answer()

        del vars(call)["__wrapped__"]  # Its signature is another one.
        return call

    def _begin(self, group: tuple[Hashable, ...]) -> None:
        """Run what waits in a task, in the context of the first caller."""
        first = self._waiting[group][0]
        first.context.run(asyncio.ensure_future, self._runs(group))

    async def _runs(self, group: tuple[Hashable, ...]) -> None:
        waiting, self._waiting[group] = self._waiting[group], []
        calls = [each for each in waiting if not each.done.done()]
        task = asyncio.current_task()

        def cancelled(_: object) -> None:
            if task is not None and all(each.done.cancelled() for each in calls):
                task.cancel()  # Nobody is there any more.

        for each in calls:
            each.done.add_done_callback(cancelled)
        try:
            await self._run(calls)
        finally:
            for each in calls:
                each.done.remove_done_callback(cancelled)
                if not each.done.done():
                    each.done.set_result(None)
            left = [each for each in self._waiting[group] if not each.done.done()]
            self._waiting[group] = left
            if left:
                self._begin(group)
            else:
                del self._waiting[group]

    async def _run(self, calls: Sequence[_Call[ItemT, ResultT]]) -> None:
        run = _Run(calls)
        token = _running.set(_running.get() | {self})
        again = bool(calls)
        try:
            while again:
                again = False
                with run.work.run() as held:
                    try:
                        results = list(await self.work(run.items))
                    except BaseException as error:
                        again = run.failed(held, error)
                        if not isinstance(error, Exception):
                            raise
                    else:
                        run.succeeded(held, results)
        finally:
            _running.reset(token)


class _ThreadCalls(_Calls[ItemT, ResultT]):
    """Of another function: one of the threads that call runs it, and the others wait."""

    def __init__(
        self,
        work: Callable[[list[ItemT]], Sequence[ResultT]],
        key: Callable[[ItemT], Hashable] | None,
    ) -> None:
        super().__init__(work, key)
        self._lock = threading.Lock()
        #: The calls that wait for the next run, by group; a group is there while it runs.
        self._waiting: dict[tuple[Hashable, ...], list[_Waiter[ItemT, ResultT]]] = {}

    def decorated(self) -> Callable[[ItemT], ResultT]:
        """The function of one item."""

        @functools.wraps(self.work)
        def call(item: ItemT) -> ResultT:
            made: _Waiter[ItemT, ResultT] = _Waiter(item)
            if self.nested:
                self._run([made])
                return made.answer()
            group = self.group(made)
            with self._lock:
                if group in self._waiting:
                    self._waiting[group].append(made)
                else:
                    self._waiting[group] = []
                    made.leads = True
            try:
                if not made.leads:
                    made.woken.wait()
                if made.leads:
                    self._lead(group, made)
            except BaseException:
                self._gone(group, made)
                raise
            return made.answer()

        del vars(call)["__wrapped__"]  # Its signature is another one.
        return call

    def _lead(self, group: tuple[Hashable, ...], leader: _Waiter[ItemT, ResultT]) -> None:
        """Run for *leader* and for all who wait; who comes meanwhile waits for the next run."""
        with self._lock:
            others, self._waiting[group] = self._waiting[group], []
        try:
            self._run([leader, *others])
        finally:
            # An interrupt of this thread is none of the others: they wait for the next run.
            with self._lock:
                left = [each for each in others if each.gained is None and each.error is None]
                self._waiting[group] = [*left, *self._waiting[group]]
            for each in others:
                if each not in left:
                    each.woken.set()
        self._hand_over(group)
        leader.leads = False

    def _hand_over(self, group: tuple[Hashable, ...]) -> None:
        """The next run is of one who waits; where nobody does, the group is gone."""
        with self._lock:
            waiting = self._waiting.get(group)
            if not waiting:
                self._waiting.pop(group, None)
                return
            leader = waiting.pop(0)
            leader.leads = True
            leader.woken.set()

    def _gone(self, group: tuple[Hashable, ...], made: _Waiter[ItemT, ResultT]) -> None:
        """A thread that waited, or ran, was interrupted."""
        with self._lock:
            waiting = self._waiting.get(group, [])
            if made in waiting:
                waiting.remove(made)
        if made.leads:
            self._hand_over(group)

    def _run(self, calls: Sequence[_Call[ItemT, ResultT]]) -> None:
        run = _Run(calls)
        token = _running.set(_running.get() | {self})
        again = True
        try:
            while again:
                again = False
                with run.work.run() as held:
                    try:
                        results = list(self.work(run.items))
                    except Exception as error:  # noqa: BLE001 - it is the callers'
                        again = run.failed(held, error)
                    else:
                        run.succeeded(held, results)
        finally:
            _running.reset(token)


class _Waiter(_Call[ItemT, ResultT]):
    """A call of a thread."""

    def __init__(self, item: ItemT) -> None:
        super().__init__(item)
        self.woken = threading.Event()
        #: Whether it is the one to run next, or runs.
        self.leads = False


class _Awaited(_Call[ItemT, ResultT]):
    """A call of a task."""

    def __init__(self, item: ItemT) -> None:
        super().__init__(item)
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.context = contextvars.copy_context()
